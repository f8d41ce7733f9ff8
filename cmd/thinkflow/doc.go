// Command thinkflow is the program: an agent for editors (thinkflow lsp) and
// for the command line (thinkflow run).
//
// This package is a shell. It reads flags and settings, puts the parts together
// and turns results into exit codes; what a run does is decided in package
// agent. Only main touches the process: everything else works on the arguments
// of run, so that tests call it in the same process.
//
// Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 stopped by a bound,
// 4 a permission was refused, 130 cancelled.
package main
