// Package trust remembers which content of a workspace a person has agreed to:
// rules files, skills, workflows, MCP servers, verify commands. Agreement is to
// a hash, so what changes is asked for again; to a path, so a copy elsewhere is
// asked for by itself; and to a kind, so a file that was trusted as a rule is
// not thereby a program.
//
// The store is one file in the user's state folder (mode 0600). A store that
// others can write is not believed. Whatever goes wrong, nothing is trusted.
package trust
