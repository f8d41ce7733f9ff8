// Package policy decides whether an action may be done, must be asked for, or
// is denied, by rules of people.
//
// A rule is a verdict (allow, ask, deny), an action and a pattern:
//
//	allow = ["bash go test", "write docs/**", "tool:github_*"]
//	ask   = ["read *.csv", "bash git push"]
//	deny  = ["read secrets/", "net *.example.org"]
//
// Deny wins over ask, ask over allow, whichever layer they come from: the
// user's configuration, the session (its mode), or the workspace, which can only
// tighten: its allow rules count for nothing. Where no rule matches, reading and
// writing are allowed and everything else asks.
//
// An answer "for this session" is a grant. It is bound to what was asked: to the
// class of action where no rule asked, to the rule where one did, or to the hash
// of exactly what was shown. A grant never lifts a deny.
//
// Which paths are forbidden, protected or secret is not decided here but by
// package workspace; the actions protected and secrets are the questions that
// follow from that.
package policy
