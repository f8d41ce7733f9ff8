//go:build !linux

package workspace

import (
	"io/fs"
	"os"
)

// entries lists the folder.
func (d *dirHandle) entries([]byte) ([]dirEntry, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	out := make([]dirEntry, 0, len(list))
	for _, e := range list {
		kind := entryOther
		switch {
		case e.Type().IsRegular():
			kind = entryFile
		case e.Type()&fs.ModeSymlink != 0:
			kind = entryLink
		case e.IsDir() && e.Type()&fs.ModeIrregular == 0:
			kind = entryDir
		}
		out = append(out, dirEntry{name: e.Name(), kind: kind})
	}
	return out, err
}

// readFile reads a regular file of the folder into buf, growing it as needed,
// at most max bytes; a larger file is errTooLarge.
func (d *dirHandle) readFile(name string, buf []byte, max int) ([]byte, error) {
	f, err := d.openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return buf[:0], err
	}
	f, fi, err := regular(f)
	if err != nil {
		return buf[:0], err
	}
	defer f.Close()
	if fi.Size() > int64(max) {
		return buf[:0], errTooLarge
	}
	if int64(cap(buf)) < fi.Size()+1 {
		buf = make([]byte, fi.Size()+1)
	}
	buf = buf[:cap(buf)]
	total := 0
	for total < len(buf) {
		n, err := f.Read(buf[total:])
		total += n
		if err != nil || n == 0 {
			break
		}
	}
	return buf[:total], nil
}

func regular(f *os.File) (*os.File, fs.FileInfo, error) {
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}
