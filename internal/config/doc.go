// Package config holds the settings of thinkflow: one typed struct, whose tags
// are the only place where a setting's key, environment variable, default,
// bounds and description are written. The reference in docs/configuration.md
// is generated from them.
//
// A value comes from the first of: flags, environment, editor settings, the
// user's file, defaults. Nothing is ever read from the workspace: what a
// repository brings along must not choose an endpoint, a key or a permission.
//
// The key of the endpoint is no setting. It comes from an environment variable
// or from a file that only its owner can read, and it is a Secret, which no
// formatting verb, log or JSON encoder prints.
package config

//go:generate go test -run TestReferenceIsFresh -update .
