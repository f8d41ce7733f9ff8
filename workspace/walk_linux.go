package workspace

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// entries lists the folder by its handle. The buffer is scratch space.
func (d *dirHandle) entries(buf []byte) ([]dirEntry, error) {
	var out []dirEntry
	for {
		n, err := unix.ReadDirent(d.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return out, d.wrap("read", ".", err)
		}
		if n <= 0 {
			return out, nil
		}
		out = d.parseDirents(buf[:n], out)
	}
}

// parseDirents reads struct linux_dirent64: inode 8, offset 8, length 2, type 1,
// name.
func (d *dirHandle) parseDirents(b []byte, out []dirEntry) []dirEntry {
	for len(b) >= 19 {
		length := int(b[16]) | int(b[17])<<8
		if length < 19 || length > len(b) {
			return out
		}
		name := b[19:length]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		e := dirEntry{name: string(name)}
		switch b[18] {
		case unix.DT_REG:
			e.kind = entryFile
		case unix.DT_DIR:
			e.kind = entryDir
		case unix.DT_LNK:
			e.kind = entryLink
		case unix.DT_UNKNOWN:
			e.kind = d.kindOf(e.name)
		default:
			e.kind = entryOther
		}
		b = b[length:]
		if e.name != "." && e.name != ".." {
			out = append(out, e)
		}
	}
	return out
}

// readFile reads a regular file of the folder into buf, growing it as needed,
// at most max bytes; a larger file is errTooLarge. It is the search's quick way
// in: three system calls for a small file.
func (d *dirHandle) readFile(name string, buf []byte, max int) ([]byte, error) {
	fd, err := openatRetry(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return buf[:0], d.wrap("open", name, err)
	}
	defer unix.Close(fd)
	buf = buf[:cap(buf)]
	total := 0
	for {
		n, err := unix.Read(fd, buf[total:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return buf[:0], &fs.PathError{Op: "read", Path: name, Err: err}
		}
		total += n
		if total < len(buf) {
			return buf[:total], nil // a regular file gives less only at its end
		}
		if total >= max {
			return buf[:0], errTooLarge
		}
		var st unix.Stat_t
		size := len(buf) * 2
		if unix.Fstat(fd, &st) == nil && int(st.Size)+1 > size {
			size = int(st.Size) + 1
		}
		bigger := make([]byte, min(size, max+1))
		copy(bigger, buf[:total])
		buf = bigger
	}
}
