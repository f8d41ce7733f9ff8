// Package redact keeps secrets out of what is written down: logs, events,
// reports, exports, error messages. It knows the secrets of this process by
// value (the API key, and whatever is registered later) and others by shape.
//
// A registered value never passes, also not in the spellings that encoders give
// it (JSON, URL, base64) and also not cut over several writes. Shapes are a
// second net: they find common tokens, private keys and assignments to names
// that say "secret", and miss what looks like nothing.
//
// Visible is the other half of showing text safely: it makes characters visible
// that hide themselves or steer what is around them.
package redact
