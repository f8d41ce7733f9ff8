// Package rig is what the tests with real editors share: where the editors are,
// the real binary, the scripted model, child processes that end for certain.
//
// An editor that is missing skips the test loudly; with CI=true it fails it.
// scripts/test-deps.sh installs what is needed.
package rig
