package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	extra := ""
	if rev, at := revision(); rev != "" {
		extra = " (" + rev + ", " + at + ")"
	}
	fmt.Fprintf(a.stdout, "thinkflow %s%s %s %s/%s\n", shortVersion(), extra, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// shortVersion is the version that was linked in, or the module's, or "dev".
func shortVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func revision() (rev, at string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			at = s.Value
		}
	}
	return rev, at
}
