// Package secretstore keeps API keys in the key ring of the operating system
// (Secret Service on Linux, Keychain on macOS, Credential Manager on Windows),
// or, where there is none, in a file that only its owner can read.
//
// A key belongs to an endpoint: it is stored under the endpoint's host and port
// and given out for no other. So a setting that points somewhere else finds no
// key to send there.
package secretstore
