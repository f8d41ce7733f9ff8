//go:build !linux && !darwin

package term

import "os"

// dropTypedAhead does nothing here.
func dropTypedAhead(*os.File) {}
