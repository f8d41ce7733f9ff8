// Package report makes one self-contained HTML page of a run from what the
// ledger knows of it: what happened when, every change as a diff, failures,
// tokens and cost. The page has no scripts and loads nothing.
package report
