package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pem is built from pieces so that no scanner takes this file for a key.
func pem(kind, body string) string {
	return "-----BEGIN " + kind + "-----\n" + body + "-----END " + kind + "-----"
}

func TestShapes(t *testing.T) {
	r := &Redactor{}
	key := pem("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA\nabc/def+ghi==\n")
	for _, c := range []struct{ name, in, want string }{
		{"OpenAI", "key sk-proj-abcdefghijklmnop1234 end", "key [redacted] end"},
		{"GitHub", "ghp_" + strings.Repeat("a1", 18) + ".", "[redacted]."},
		{"GitHub fine-grained", "github_pat_" + strings.Repeat("a1_", 12), "[redacted]"},
		{"GitLab", "glpat-" + strings.Repeat("ab", 10), "[redacted]"},
		{"AWS", "id=AKIA" + strings.Repeat("A1", 8) + "!", "id=[redacted]!"},
		{"Slack", "xoxb-1234567890-abc", "[redacted]"},
		{"Google", "AIza" + strings.Repeat("x", 35), "[redacted]"},
		{"JWT", "t eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc-_1 t", "t [redacted] t"},
		{"bearer", "Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"},
		{"bearer in small letters", `"authorization":"bearer abcdef123456=="`, `"authorization":"bearer [redacted]"`},
		{"basic", "authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted]"},
		{"header", "x-api-key: 0123456789abcdef", "x-api-key: [redacted]"},
		{"URL", "git clone https://me:p4ssw0rd@example.org/x", "git clone https://me:[redacted]@example.org/x"},
		{"query", "GET /x?api_key=abcdefgh&y=1", "GET /x?api_key=[redacted]&y=1"},
		{"env file", "A=1\nDB_PASSWORD=hunter2 and more\nexport GITHUB_TOKEN='x'\nB=2", "A=1\nDB_PASSWORD=[redacted]\nexport GITHUB_TOKEN=[redacted]\nB=2"},
		{"JSON", `{"client_secret": "abcdefgh", "name": "x"}`, `{"client_secret": "[redacted]", "name": "x"}`},
		{"private key", "a\n" + key + "\nb", "a\n[redacted]\n\n\n\nb"},
		{"private key in JSON", `{"k":"` + strings.ReplaceAll(key, "\n", `\n`) + `","n":1}`, `{"k":"[redacted]","n":1}`},
		{"private key cut off", "-----BEGIN PRIVATE KEY-----\nMIIE\nabcd", "[redacted]\n\n"},
		{"code that names one", "const head = \"-----BEGIN PRIVATE KEY-----\"\nfunc f() {}\n", "const head = \"[redacted]\nfunc f() {}\n"},
		{"public key stays", pem("PUBLIC KEY", "MIIB\n"), pem("PUBLIC KEY", "MIIB\n")},

		{"code stays", "token = parser.next()\nconst apiKey = os.Getenv(\"API_KEY\")\npassword := ask()\n", "token = parser.next()\nconst apiKey = os.Getenv(\"API_KEY\")\npassword := ask()\n"},
		{"words stay", "the bearer of bad news; sk-8; ghp_x; task-management-system-with-a-long-name", "the bearer of bad news; sk-8; ghp_x; task-management-system-with-a-long-name"},
		{"hashes stay", "commit 40cfc0e9a1b2c3d4e5f60718293a4b5c6d7e8f90", "commit 40cfc0e9a1b2c3d4e5f60718293a4b5c6d7e8f90"},
		{"URLs stay", "https://example.org:8080/a@b?x=1", "https://example.org:8080/a@b?x=1"},
		{"twice is once", "Bearer [redacted]", "Bearer [redacted]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.String(c.in)
			require.Equal(t, c.want, got)
			require.Equal(t, got, r.String(got), "redacting again changes nothing")
		})
	}
}

func TestValuesInEverySpelling(t *testing.T) {
	secret := `Zx"9/\<&>é+!`
	r, err := New(secret)
	require.NoError(t, err)
	raw, err := json.Marshal(map[string]string{"k": secret})
	require.NoError(t, err)
	for name, in := range map[string]string{
		"raw": "a" + secret + "b", "json": string(raw), "go": strconv.Quote(secret), "url": "?q=" + url.QueryEscape(secret), "path": url.PathEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64url": base64.URLEncoding.EncodeToString([]byte(secret)),
	} {
		require.Contains(t, r.String(in), r.mark(), name)
		require.NotContains(t, r.String(in), "Zx", name)
	}
	var b bytes.Buffer
	w := NewWriter(r, &b)
	slog.New(slog.NewJSONHandler(w, nil)).Info("x", "key", secret, "url", "https://h/?k="+url.QueryEscape(secret))
	slog.New(slog.NewTextHandler(w, nil)).Info("x "+secret, "key", []string{secret})
	require.NoError(t, w.Close())
	require.NotContains(t, b.String(), "Zx")
	require.Equal(t, 4, strings.Count(b.String(), r.mark()), b.String())
}

func TestOverlapsAndMarks(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		in     string
		want   string
	}{
		{"overlapping values", []string{"abcdef", "defghi"}, "xabcdefghix", "x[redacted]x"},
		{"one in another", []string{"abcdef", "abcdefghi"}, "abcdefghi abcdef", "[redacted] [redacted]"},
		{"overlapping itself", []string{"ababab"}, "ababababab!", "[redacted]!"},
		{"value across a mark", []string{"abcdef", "ted]xyz"}, "abcdefxyz", "<redacted>xyz"},
		{"value in a mark", []string{"redacted"}, "a redacted b", "a [hidden] b"},
		{"no mark is safe", []string{"[<{(‹|█redacted hidden"}, "anything", ""},
		{"several lines", []string{"first line\nsecond line"}, "first line\n x second line", "[redacted]\n x [redacted]"},
		{"blanks around", []string{"  abcdef\n"}, "abcdef", "[redacted]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := New(c.values...)
			require.NoError(t, err)
			require.Equal(t, c.want, r.String(c.in))
		})
	}
	_, err := New("", "abc", "abcdef")
	require.ErrorContains(t, err, "1 of the secrets have fewer than 6 characters")
}

func TestWriterWaitsForTheRest(t *testing.T) {
	r, err := New("topsecret", "two\nlines and")
	require.NoError(t, err)
	var b bytes.Buffer
	w := NewWriter(r, &b)
	for _, s := range []string{"a top", "sec", "ret b\nto", "p"} {
		_, err := w.Write([]byte(s))
		require.NoError(t, err)
	}
	require.NotContains(t, b.String(), "topsecret")
	_, err = w.Write([]byte("\ntwo\nlines and more\n"))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.Equal(t, "a [redacted] b\ntop\n[redacted] more\n", b.String())
}

func TestWriterLongLine(t *testing.T) {
	secret := "topsecret-0123456789"
	r, err := New(secret)
	require.NoError(t, err)
	var b bytes.Buffer
	w := NewWriter(r, &b)
	piece := strings.Repeat("x", 1000) + secret
	for range 300 {
		for _, half := range []string{piece[:1009], piece[1009:]} {
			_, err := w.Write([]byte(half))
			require.NoError(t, err)
		}
	}
	require.NotZero(t, b.Len(), "a line without end is not kept for ever")
	require.NoError(t, w.Close())
	require.NotContains(t, b.String(), secret)
	require.Equal(t, 300, strings.Count(b.String(), "[redacted]"))
}

// However text and values look and wherever the writes are cut: no registered
// value gets through, and the cuts change nothing.
func FuzzNothingGetsThrough(f *testing.F) {
	f.Add("abcdef", "defghi", "x abcdefghi y\nBearer abcdef\n", uint64(1))
	f.Add("ted]xy", "abcdef", "abcdefxy\n-----BEGIN PRIVATE KEY-----\nabcdef\n", uint64(2))
	f.Add("a\nb\nc\nd", "aaaaaa", "aaaaaaaaaaaa\na\nb\nc\nd\n", uint64(3))
	f.Add("redacted", "hidden]", "PASSWORD=redacted\nTOKEN=hidden]", uint64(4))
	f.Fuzz(func(t *testing.T, v1, v2, text string, seed uint64) {
		r, err := New(v1, v2)
		if err != nil {
			t.Skip()
		}
		whole := r.String(text)
		var b bytes.Buffer
		w := NewWriter(r, &b)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for rest := text; rest != ""; {
			n := 1 + rnd.IntN(len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []string{strings.TrimSpace(v1), strings.TrimSpace(v2)} {
			if v == "" {
				continue
			}
			if strings.Contains(whole, v) {
				t.Fatalf("String(%q) = %q holds %q", text, whole, v)
			}
			if strings.Contains(b.String(), v) {
				t.Fatalf("written %q holds %q", b.String(), v)
			}
		}
	})
}

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want, line string }{
		{"plain", "a\tb\nü 漢", "a\tb\nü 漢", "a␉b␊ü 漢"},
		{"escape", "\x1b[31mred", "␛[31mred", "␛[31mred"},
		{"CRLF", "a\r\nb", "a\nb", "a␍␊b"},
		{"lone CR", "a\rb", "a␍b", "a␍b"},
		{"bidi", "a\u202eb\u2066c", "a<U+202E>b<U+2066>c", "a<U+202E>b<U+2066>c"},
		{"tags", "x\U000e0041\U000e0042", "x<U+E0041><U+E0042>", "x<U+E0041><U+E0042>"},
		{"zero width", "rm\u200b -rf\ufeff", "rm<U+200B> -rf<U+FEFF>", "rm<U+200B> -rf<U+FEFF>"},
		{"joiner in an emoji", "👩‍💻", "👩‍💻", "👩<U+200D>💻"},
		{"joiner in Persian", "می\u200cخواهم", "می\u200cخواهم", "می<U+200C>خواهم"},
		{"joiner in ASCII", "g\u200dit", "g<U+200D>it", "g<U+200D>it"},
		{"heart", "❤\ufe0f", "❤\ufe0f", "❤<U+FE0F>"},
		{"bytes hidden in selectors", "a\ufe01\ufe02\U000e0100", "a<U+FE01><U+FE02><U+E0100>", "a<U+FE01><U+FE02><U+E0100>"},
		{"selectors behind one another", "❤\ufe0f\ufe0f", "❤\ufe0f<U+FE0F>", "❤<U+FE0F><U+FE0F>"},
		{"blank letters", "a\u3164b\u2800c\u115f", "a<U+3164>b<U+2800>c<U+115F>", "a<U+3164>b<U+2800>c<U+115F>"},
		{"C1", "a\u009bm", "a<U+009B>m", "a<U+009B>m"},
		{"not UTF-8", "a\xffb", "a\ufffdb", "a\ufffdb"},
		{"separators", "a\u2028b\u2029", "a<U+2028>b<U+2029>", "a<U+2028>b<U+2029>"},
		{"soft hyphen", "a\u00adb", "a<U+00AD>b", "a<U+00AD>b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, Visible(c.in))
			require.Equal(t, c.line, VisibleLine(c.in))
		})
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202e\x1b[0m\U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		once := Visible(s)
		for _, r := range once {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0xe0000 && r <= 0xe007f {
				t.Fatalf("%q became %q", s, once)
			}
		}
		if again := Visible(once); again != once {
			t.Fatalf("not stable: %q, %q", once, again)
		}
		if line := VisibleLine(s); strings.ContainsAny(line, "\r\n\t") {
			t.Fatalf("%q became %q", s, line)
		}
	})
}

func TestTail(t *testing.T) {
	r, err := New("sk-secret-value")
	require.NoError(t, err)
	for s, want := range map[string]int{"": 0, "x": 0, "a s": 1, "sk-secret": 9, "sk-secret-value": 0, "sk-secretsk-": 3} {
		require.Equal(t, want, r.Tail(s), s)
	}
	require.Zero(t, (&Redactor{}).Tail("sk-"))
}

func TestValuesAndHolds(t *testing.T) {
	r, err := New("sk-secret-value")
	require.NoError(t, err)
	require.Equal(t, "password=abcdef [redacted]", r.Values("password=abcdef sk-secret-value"))
	require.True(t, r.Holds("x", "a sk-secret-value"))
	require.False(t, r.Holds("x", "a sk-secret"))
}

func TestJSON(t *testing.T) {
	r, err := New("sk-secret\"value", "12345678")
	require.NoError(t, err)
	for in, want := range map[string]string{
		`{"b":1,"a":"x"}`:                           `{"b":1,"a":"x"}`, // as it was
		`{"a":"sk-secret\"value"}`:                  `{"a":"[redacted]"}`,
		`{"a":["x\nAPI_TOKEN=abcdef"],"n":1234567}`: `{"a":["x\nAPI_TOKEN=[redacted]"],"n":1234567}`,
		`not sk-secret"value`:                       `not [redacted]`,
	} {
		require.Equal(t, want, string(r.JSON([]byte(in))))
	}
	require.NotContains(t, string(r.JSON([]byte(`{"n":12345678,"12345678":0}`))), "12345678")
}
