package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// retry decides how long to wait before a request is sent again.
type retry struct {
	left    int
	tried   bool // a further attempt was made
	cap     time.Duration
	backoff *backoff.ExponentialBackOff
}

func newRetry(attempts int, longest time.Duration) *retry {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 500*time.Millisecond, longest
	return &retry{left: attempts, cap: longest, backoff: b}
}

// next says how long to wait for another attempt; a negative wait means that
// there is none. reason is set when the server asks for a longer wait than is
// allowed, or all attempts are used up.
func (r *retry) next(err error) (wait time.Duration, reason string) {
	var me *ModelError
	if !errors.As(err, &me) || !me.Retryable {
		return -1, ""
	}
	if me.RetryAfter > r.cap {
		return -1, fmt.Sprintf("the server asks to wait %s, longer than retry_cap (%s)", me.RetryAfter.Round(time.Second), r.cap)
	}
	if r.left <= 0 {
		if r.tried {
			return -1, "gave up after several attempts"
		}
		return -1, ""
	}
	r.left--
	r.tried = true
	if me.RetryAfter > 0 {
		return me.RetryAfter, ""
	}
	return min(r.backoff.NextBackOff(), r.cap), ""
}
