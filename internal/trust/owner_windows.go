package trust

import (
	"fmt"
	"io/fs"
)

// believable refuses what is no file. The state folder is the user's own there.
func believable(path string, fi fs.FileInfo) error {
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("trust: %s is not a regular file; nothing is trusted until it is removed", path)
	}
	return nil
}
