package redact

import (
	"regexp"
	"strings"
)

// shape is a kind of secret that shows. Go's regular expressions take linear
// time; the hint saves even that where it does not occur.
type shape struct {
	hint string // in lower case; text without it cannot match
	re   *regexp.Regexp
	keep int // submatch that stays in front of the mark; 0 = none
}

var shapes = []shape{
	// Tokens with a prefix of their own.
	{"sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`), 0},
	{"_live_", regexp.MustCompile(`\b[sr]k_live_[A-Za-z0-9]{16,}`), 0},
	{"gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}`), 0},
	{"github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`), 0},
	{"glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`), 0},
	{"xox", regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`), 0},
	{"akia", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`), 0},
	{"asia", regexp.MustCompile(`\bASIA[0-9A-Z]{16}\b`), 0},
	{"aiza", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{30,}`), 0},
	{"npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{30,}`), 0},
	{"pypi-", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{30,}`), 0},
	{"hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`), 0},
	{"gsk_", regexp.MustCompile(`\bgsk_[A-Za-z0-9]{30,}`), 0},
	{"xai-", regexp.MustCompile(`\bxai-[A-Za-z0-9]{30,}`), 0},
	{"sg.", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`), 0},
	{"eyj", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), 0},
	// Headers and URLs.
	{"bearer", regexp.MustCompile(`(?i)\b(bearer[ \t]+)[A-Za-z0-9._~+/-]{8,}=*`), 1},
	{"authorization", regexp.MustCompile(`(?i)\b(authorization"?[ \t]*[:=][ \t]*"?(?:basic|token|apikey)[ \t]+)[A-Za-z0-9._~+/-]{8,}=*`), 1},
	{"api", regexp.MustCompile(`(?i)\b(x?-?api-?key"?[ \t]*:[ \t]*"?)[A-Za-z0-9._~+/-]{8,}=*`), 1},
	{"://", regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']{3,}@`), 1},
	// Assignments to names that say what they hold: in .env files, in JSON and
	// YAML, in the query of a URL.
	{"=", regexp.MustCompile(`(?m)(^[ \t]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]*` + secretCaps + `[A-Z0-9_]*[ \t]*=[ \t]*)[^\s].*$`), 1},
	{`"`, regexp.MustCompile(`(?i)("[a-z0-9_.-]*` + secretWords + `"\s*:\s*")[^"\\]{6,}`), 1},
	{"=", regexp.MustCompile(`(?i)([?&][a-z0-9_.-]*` + secretWords + `=)[^\s&"'#]{6,}`), 1},
}

const (
	secretCaps  = `(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIAL)`
	secretWords = `(?:secret|secret_?key|client_?secret|token|password|passwd|passphrase|api_?key|access_?key|private_?key|signature|sig)`
)

func redactShapes(s, mark string) string {
	lower := ""
	for _, sh := range shapes {
		if lower == "" {
			lower = strings.ToLower(s)
		}
		if !strings.Contains(lower, sh.hint) || !sh.re.MatchString(s) {
			continue
		}
		s = sh.re.ReplaceAllStringFunc(s, func(m string) string {
			if strings.Contains(m, mark) && mark != "" && strings.HasSuffix(strings.TrimRight(m, "@"), mark) {
				return m // done already
			}
			head, tail := "", ""
			if sh.keep > 0 {
				head = sh.re.FindStringSubmatch(m)[sh.keep]
			}
			if strings.HasSuffix(m, "@") && sh.hint == "://" {
				tail = "@"
			}
			return head + mark + tail
		})
	}
	return s
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemKey   = "PRIVATE KEY"
)

// keyLine is a line inside a private key: base64 or a header, also indented,
// quoted, or with the line break as an escape.
var keyLine = regexp.MustCompile(`^[ \t"'+>|]*([A-Za-z0-9+/=]+|[A-Za-z-]+: [A-Za-z0-9,/+=-]+|)(\\[nr])*[ \t"',;\\+]*\r?$`)

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
		if !keyLine.MatchString(line) && !strings.Contains(line, `\n`) {
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
