// Package registry keeps native tools and calls them, so that every tool fails
// in the same few ways: a name that is not there, arguments that do not fit the
// schema, a tool that cannot be called now, a time-out after which somebody has
// to look what happened. It knows no model, no file and no run: what handlers
// need of those comes in as E.
//
// One call goes through these steps; with the first four errors the handler
// never ran:
//
//	find       UNKNOWN_TOOL
//	validate   INVALID_ARGUMENT    against the schema that the model was given
//	ready      TOOL_UNAVAILABLE    not here, or its breaker is open
//	permit     PERMISSION_DENIED   asked by the caller
//	handle     TIMEOUT, EXECUTION_ERROR
//
// A tool with side effects that ran into its time-out is never simply called
// again: its probe says whether the effect happened.
package registry
