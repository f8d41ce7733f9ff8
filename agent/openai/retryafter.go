package openai

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what is taken over from a server; it only keeps the
// arithmetic sound. Whether to wait that long is for the caller to say.
const maxRetryAfter = 30 * 24 * time.Hour

// retryAfter reads how long a server wants to be left alone: retry-after-ms, or
// Retry-After as seconds, also with a fraction, or as an HTTP date (RFC 9110
// section 10.2.3). A date that has passed means now. ok is false when there is
// no header, or none that makes sense (LR-12).
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if ms, ok := decimal(h.Get("Retry-After-Ms")); ok {
		return scaled(ms, time.Millisecond), true
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, ok := decimal(v); ok {
		return scaled(s, time.Second), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

// decimal reads digits with at most one point: no sign, exponent, Inf or NaN.
func decimal(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	for _, r := range s {
		if (r < '0' || r > '9') && r != '.' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func scaled(n float64, unit time.Duration) time.Duration {
	if n > float64(maxRetryAfter)/float64(unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
