package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	cookieName = "thinkflow"
	// ticketLife is how long a ticket may wait to be used.
	ticketLife = 2 * time.Minute
	// maxTickets and maxCookies bound what is remembered; the oldest go.
	maxTickets = 64
	maxCookies = 64
)

// NewToken makes a token of 256 bits, as hex.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// guard decides who may ask what.
type guard struct {
	token string
	// hosts that a request may name besides loopback ones: "name:port".
	hosts  map[string]bool
	remote bool // not only loopback
	now    func() time.Time

	mu      sync.Mutex // guards all below
	tickets []ticket
	cookies []string
}

type ticket struct {
	value string
	until time.Time
}

// newTicket makes a ticket that can be changed into a cookie once.
func (g *guard) newTicket() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := NewToken()
	g.tickets = append(g.tickets, ticket{v, g.now().Add(ticketLife)})
	if len(g.tickets) > maxTickets {
		g.tickets = g.tickets[1:]
	}
	return v
}

// redeem changes a ticket into a cookie.
func (g *guard) redeem(value string) (cookie string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, t := range g.tickets {
		if same(t.value, value) {
			g.tickets = append(g.tickets[:i:i], g.tickets[i+1:]...)
			if g.now().After(t.until) {
				return "", false
			}
			cookie = NewToken()
			g.cookies = append(g.cookies, cookie)
			if len(g.cookies) > maxCookies {
				g.cookies = g.cookies[1:]
			}
			return cookie, true
		}
	}
	return "", false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (g *guard) knows(cookie string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ok := false
	for _, c := range g.cookies {
		ok = same(c, cookie) || ok
	}
	return ok
}

// host refuses requests that name another host: a page of some site whose name
// was made to point here (DNS rebinding).
func (g *guard) host(r *http.Request) bool {
	if g.hosts[strings.ToLower(r.Host)] {
		return true
	}
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && (ip.IsLoopback() || g.remote)
}

// origin refuses what pages of other sites send. Programs send no Origin.
func (g *guard) origin(r *http.Request) bool {
	if s := r.Header.Get("Sec-Fetch-Site"); s != "" && s != "same-origin" && s != "none" {
		return false
	}
	o := r.Header.Get("Origin")
	if o == "" {
		return true
	}
	u, err := url.Parse(o)
	return err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "http" || u.Scheme == "https")
}

// allowed tells whether the request may be served.
func (g *guard) allowed(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(token, g.token)
	}
	c, err := r.Cookie(cookieName)
	if err != nil || !g.knows(c.Value) {
		return false
	}
	// A cookie comes along by itself: what changes something must say that it
	// comes from our page.
	return r.Method == http.MethodGet || r.Header.Get("Origin") != ""
}
