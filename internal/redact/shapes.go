package redact

import (
	"regexp"
	"strings"
	"sync"
)

// once compiles a pattern when it is first needed: most never are, and together
// they would take a third of a millisecond of every start of the program.
func once(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// shape is a kind of secret that shows in a line. Go's regular expressions take
// linear time, but not little: they are run only on lines that hold the hint.
type shape struct {
	hint string // in lower case
	more func(line, lower string) bool
	re   func() *regexp.Regexp
	keep int // submatch that stays in front of the mark; 0 = none
	tail string
}

var shapes = []shape{
	// Tokens with a prefix of their own.
	{hint: "sk-", re: once(`\bsk-[A-Za-z0-9_-]{16,}`)},
	{hint: "_live_", re: once(`\b[sr]k_live_[A-Za-z0-9]{16,}`)},
	{hint: "gh", more: inLine("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re: once(`\bgh[pousr]_[A-Za-z0-9]{20,}`)},
	{hint: "github_pat_", re: once(`\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{hint: "glpat-", re: once(`\bglpat-[A-Za-z0-9_-]{16,}`)},
	{hint: "xox", re: once(`\bxox[a-z]-[A-Za-z0-9-]{10,}`)},
	{hint: "akia", re: once(`\bAKIA[0-9A-Z]{16}\b`)},
	{hint: "asia", re: once(`\bASIA[0-9A-Z]{16}\b`)},
	{hint: "aiza", re: once(`\bAIza[0-9A-Za-z_-]{30,}`)},
	{hint: "npm_", re: once(`\bnpm_[A-Za-z0-9]{30,}`)},
	{hint: "pypi-", re: once(`\bpypi-[A-Za-z0-9_-]{30,}`)},
	{hint: "hf_", re: once(`\bhf_[A-Za-z0-9]{30,}`)},
	{hint: "gsk_", re: once(`\bgsk_[A-Za-z0-9]{30,}`)},
	{hint: "xai-", re: once(`\bxai-[A-Za-z0-9]{30,}`)},
	{hint: "sg.", re: once(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},
	{hint: "eyj", re: once(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	// Headers and URLs.
	{hint: "bearer", re: once(`(?i)\b(bearer[ \t]+)[A-Za-z0-9._~+/-]{8,}=*`), keep: 1},
	{hint: "authorization", re: once(`(?i)\b(authorization"?[ \t]*[:=][ \t]*"?(?:basic|token|apikey)[ \t]+)[A-Za-z0-9._~+/-]{8,}=*`), keep: 1},
	{hint: "api", more: inLine("api-key", "apikey"), re: once(`(?i)\b(x?-?api-?key"?[ \t]*:[ \t]*"?)[A-Za-z0-9._~+/-]{8,}=*`), keep: 1},
	{hint: "://", more: inLine("@"), re: once(`(\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']{3,}@`), keep: 1, tail: "@"},
	// Assignments to names that say what they hold: in .env files, in JSON, in
	// the query of a URL.
	{hint: "=", more: func(line, _ string) bool { return containsAny(line, capitals) },
		re: once(`(^[ \t]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]*(?:` + strings.Join(capitals, "|") + `)[A-Z0-9_]*[ \t]*=[ \t]*)[^\s].*$`), keep: 1},
	{hint: `"`, more: func(_, lower string) bool { return strings.Contains(lower, ":") && containsAny(lower, words) },
		re: once(`(?i)("[a-z0-9_.-]*(?:` + strings.Join(words, "|") + `)"[ \t]*:[ \t]*")[^"\\]{6,}`), keep: 1},
	{hint: "=", more: func(_, lower string) bool { return strings.ContainsAny(lower, "?&") && containsAny(lower, words) },
		re: once(`(?i)([?&][a-z0-9_.-]*(?:` + strings.Join(words, "|") + `)=)[^\s&"'#]{6,}`), keep: 1},
}

// Names that say that a secret follows: of variables of the environment, and of
// fields and parameters.
var (
	capitals = []string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"}
	words    = []string{"secret", "secret_key", "secretkey", "token", "password", "passwd", "passphrase", "apikey", "api_key", "access_key", "accesskey", "private_key", "privatekey", "signature", "sig"}
)

func inLine(some ...string) func(line, lower string) bool {
	return func(_, lower string) bool { return containsAny(lower, some) }
}

func containsAny(s string, some []string) bool {
	for _, w := range some {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// redactShapes looks at each line by itself.
func redactShapes(s, mark string) string {
	var b strings.Builder
	done := 0 // bytes of s that are in b
	for at := 0; at < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
			end = at + i
		}
		line := s[at:end]
		if got := redactLine(line, mark); got != line {
			b.WriteString(s[done:at])
			b.WriteString(got)
			done = end
		}
		at = end + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func redactLine(line, mark string) string {
	lower := strings.ToLower(line)
	for i := range shapes {
		sh := &shapes[i]
		if !strings.Contains(lower, sh.hint) || sh.more != nil && !sh.more(line, lower) {
			continue
		}
		line = sh.re().ReplaceAllStringFunc(line, func(m string) string {
			if mark != "" && strings.HasSuffix(strings.TrimSuffix(m, sh.tail), mark) {
				return m // done already
			}
			head := ""
			if sh.keep > 0 {
				head = sh.re().FindStringSubmatch(m)[sh.keep]
			}
			return head + mark + sh.tail
		})
	}
	return line
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemKey   = "PRIVATE KEY"
)

// keyLine is a line inside a private key: base64 or a header, also indented,
// quoted, or with the line break as an escape.
var keyLine = once(`^[ \t"'+>|]*([A-Za-z0-9+/=]+|[A-Za-z-]+: [A-Za-z0-9,/+=-]+|)(\\[nr])*[ \t"',;\\+]*\r?$`)

// redactKeys replaces private keys in PEM, begun (inKey) or not, and reports
// whether one goes on after the text.
func redactKeys(s string, inKey bool, mark string) (string, bool) {
	if !inKey && !strings.Contains(s, pemBegin) {
		return s, false
	}
	var b strings.Builder
	for s != "" {
		if !inKey {
			i := strings.Index(s, pemBegin)
			if i < 0 {
				break
			}
			head, rest, ok := strings.Cut(s[i+len(pemBegin):], "-----")
			if !ok || !strings.HasSuffix(head, pemKey) && !strings.HasSuffix(head, pemKey+" BLOCK") || len(head) > 64 {
				b.WriteString(s[:i+len(pemBegin)])
				s = s[i+len(pemBegin):]
				continue
			}
			b.WriteString(s[:i])
			b.WriteString(mark)
			s, inKey = rest, true
			continue
		}
		// Inside: up to the end marker on the same line, or line by line while
		// the lines look like a key.
		line, rest, more := strings.Cut(s, "\n")
		if i := strings.Index(line, pemEnd); i >= 0 {
			after := line[i+len(pemEnd):]
			if j := strings.Index(after, "-----"); j >= 0 {
				after = after[j+len("-----"):]
			} else {
				after = ""
			}
			s, inKey = after, false
			if more {
				s += "\n" + rest
			}
			continue
		}
		if !keyLine().MatchString(line) && !strings.Contains(line, `\n`) {
			inKey = false // it was only a mention
			continue
		}
		if !more {
			return b.String(), true
		}
		b.WriteByte('\n')
		s = rest
	}
	b.WriteString(s)
	return b.String(), inKey
}
