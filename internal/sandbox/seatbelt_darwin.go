package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// seatbeltPath is fixed: a program of that name elsewhere is not Apple's.
const seatbeltPath = "/usr/bin/sandbox-exec"

// seatbelt runs commands under a profile of macOS.
type seatbelt struct{}

func openSeatbelt(context.Context) (Report, mechanism, error) {
	if _, err := os.Stat(seatbeltPath); err != nil {
		return Report{}, nil, errors.New(seatbeltPath + " is not there")
	}
	return Report{
		Kind:      Seatbelt,
		Files:     "only the workspace, a private temporary folder and the cache folder can be written; version control metadata and protected paths cannot",
		Network:   "none",
		Processes: "others are seen, but get no signals",
		Limits: []string{
			"Apple calls sandbox-exec deprecated",
			"protected paths that do not exist can be made, and are reported afterwards",
			"what leaves the process group is not ended",
		},
	}, seatbelt{}, nil
}

func (seatbelt) command(ctx context.Context, p *plan) (*Command, error) {
	args := append([]string{"-p", profile(p), "--"}, p.argv...)
	cmd := exec.CommandContext(ctx, seatbeltPath, args...)
	cmd.Dir = p.dir
	return &Command{Cmd: cmd}, nil
}

func candidates(*tools) []candidate { return []candidate{{Seatbelt, openSeatbelt}} }
