package agent

import (
	"errors"
	"fmt"
	"strings"
)

// takeSteer puts messages that came meanwhile into the history.
func (r *run) takeSteer() bool {
	r.mu.Lock()
	texts := r.steer
	r.steer = nil
	r.mu.Unlock()
	for _, text := range texts {
		r.s.learn(text, "a message of the user")
		r.s.rememberTask(text)
		r.s.append(Message{Role: RoleUser, Content: text})
		r.recordSteer(text)
	}
	return len(texts) > 0
}

// lastSteer takes what came at the last moment; if nothing did, the run takes
// no more, so that no message is accepted and then lost.
func (r *run) lastSteer() bool {
	if r.takeSteer() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsteered = len(r.steer) == 0
	return !r.unsteered
}

func (r *run) isSteered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steer) > 0
}

// Steer gives the running task a further message, which the model sees with
// its next turn.
func (e *Engine) Steer(id, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("the message is empty")
	}
	r, err := e.find(id)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsteered {
		return fmt.Errorf("run %q: %w", id, ErrNoRun)
	}
	r.steer = append(r.steer, text)
	return nil
}
