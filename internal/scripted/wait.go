package scripted

import "time"

// pace waits until the characters sent so far fit the rate; it keeps to the
// rate on average, whatever the granularity of timers.
func (p *player) pace(chars int) error {
	if p.rate <= 0 {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	now := time.Now()
	if p.paceStart.IsZero() {
		p.paceStart = now
	}
	p.paceChars += chars
	due := p.paceStart.Add(p.scaled(time.Duration(float64(p.paceChars) / charsPerToken / float64(p.rate) * float64(time.Second))))
	return p.waitTime(due.Sub(now))
}

func (p *player) await(name string) error {
	p.sv.update(func() { p.sv.reached[name] = true })
	return p.waitFor(func() bool { return p.sv.released[name] }, nil)
}

func (p *player) scaled(d time.Duration) time.Duration {
	if s := p.sv.opts.Speed; s > 0 {
		return time.Duration(float64(d) / s)
	}
	return d
}

func (p *player) pause(d time.Duration) error { return p.waitTime(p.scaled(d)) }

func (p *player) waitTime(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return p.waitFor(nil, t.C)
}

// waitFor waits for the condition (under the server's lock) or the timer; with
// neither it waits until the client goes. Keep-alive comments go out meanwhile.
func (p *player) waitFor(cond func() bool, timer <-chan time.Time) error {
	var tick <-chan time.Time
	if p.keepalive > 0 && p.started {
		t := time.NewTicker(p.scaled(p.keepalive))
		defer t.Stop()
		tick = t.C
	}
	for {
		p.sv.mu.Lock()
		ok, changed := cond != nil && cond(), p.sv.changed
		p.sv.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-timer:
			return nil
		case <-tick:
			if err := p.write([]byte(": keep-alive\n\n")); err != nil {
				return err
			}
		case <-p.ctx.Done():
			return errGone
		case <-p.sv.closed:
			return errGone
		}
	}
}
