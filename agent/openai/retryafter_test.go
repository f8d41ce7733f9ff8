package openai

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		name, value string
		want        time.Duration
		ok          bool
	}{
		{"Retry-After", "7", 7 * time.Second, true},
		{"Retry-After", "1.5", 1500 * time.Millisecond, true},
		{"Retry-After", "0", 0, true},
		{"Retry-After", " 2 ", 2 * time.Second, true},
		{"Retry-After", "Wed, 01 Jul 2026 10:00:30 GMT", 30 * time.Second, true},
		{"Retry-After", "Wednesday, 01-Jul-26 10:00:30 GMT", 30 * time.Second, true},
		{"Retry-After", "Wed Jul  1 10:00:30 2026", 30 * time.Second, true},
		{"Retry-After", "Wed, 01 Jul 2026 09:59:00 GMT", 0, true},
		{"Retry-After", "86400", 24 * time.Hour, true},
		{"Retry-After", "99999999999999999999", maxRetryAfter, true},
		{"Retry-After", "Wed, 01 Jul 2099 10:00:30 GMT", maxRetryAfter, true},
		{"Retry-After", "-3", 0, false},
		{"Retry-After", "soon", 0, false},
		{"Retry-After", "²", 0, false},
		{"Retry-After", "1e3", 0, false},
		{"Retry-After", "NaN", 0, false},
		{"Retry-After", "Inf", 0, false},
		{"Retry-After", "1.2.3", 0, false},
		{"Retry-After", ".", 0, false},
		{"Retry-After", "", 0, false},
		{"retry-after-ms", "250", 250 * time.Millisecond, true},
		{"retry-after-ms", "soon", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.value, func(t *testing.T) {
			h := http.Header{}
			h.Set(tt.name, tt.value)
			if got, ok := retryAfter(h, now); got != tt.want || ok != tt.ok {
				t.Errorf("got %v %v, want %v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
	both := http.Header{}
	both.Set("Retry-After", "7")
	both.Set("Retry-After-Ms", "250")
	if got, _ := retryAfter(both, now); got != 250*time.Millisecond {
		t.Errorf("both headers: got %v, want the finer one", got)
	}
	both.Set("Retry-After-Ms", "soon")
	if got, _ := retryAfter(both, now); got != 7*time.Second {
		t.Errorf("a broken finer one: got %v, want the other", got)
	}
}
