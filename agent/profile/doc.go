// Package profile knows models: how each is best spoken to. It is a table of
// data and a lookup; a user's configuration adds rows and changes fields. What
// it says is a default only: an explicit setting always wins.
package profile
