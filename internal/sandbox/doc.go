// Package sandbox runs a shell command line so that it can write only where it
// may, reach no network, and see no process of the user's.
//
// Three mechanisms, the first that works is in force:
//
//   - bubblewrap (Linux): own mount, process, network and IPC namespaces. The
//     file system is read-only but for the workspace's roots, a private temporary
//     folder and a cache folder; version control metadata and existing protected
//     paths inside the roots are mounted read-only over themselves.
//   - Landlock (Linux 6.2 and later) with a seccomp filter: needs no program and
//     no namespaces, so it works in most containers. Landlock cannot take a
//     folder out of a writable one, so around protected paths every neighbour is
//     granted by itself; nothing new can be made right beside them.
//   - sandbox-exec (macOS): a profile.
//
// Elsewhere nothing confines, [Report.Confines] says so, and the caller asks a
// person for every command.
//
// A protected path that does not exist cannot be mounted read-only. Such paths
// are compared before and after: [Command.Finish] names what the command made
// or changed.
//
// The package decides nothing: which paths are protected, who is asked and what
// an approval grants is the caller's. Process groups, time-outs and output are
// the caller's too; it only has to start the command through [Command.Start] or
// [Command.Run], and to call [Command.Finish].
package sandbox
