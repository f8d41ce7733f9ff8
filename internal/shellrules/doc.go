// Package shellrules decides whether a shell command line may run without a
// question. It parses the line and looks at every simple command in it; each
// must begin with the words of an entry of the allow list, whole words, compared
// literally.
//
// Whatever the package does not understand completely asks: substitutions,
// redirections, assignments, functions, loops, background commands, parse
// errors, odd characters. Programs that run other programs (sh, env, xargs,
// find -exec, git -c, …) ask unless an entry spells the command out.
//
// The package is about one shell, bash, and about what the line runs directly.
// What an allowed program then does (make runs a Makefile) is for the sandbox.
package shellrules
