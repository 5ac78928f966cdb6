package bugreport

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"
)

// File is one file of a report.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// NewestLast: the end of the text tells more than its beginning.
	NewestLast bool `json:"-"`
}

// maxFile bounds a file of a report.
const maxFile = 1 << 20

// Bounded is the file with its text cut where it is too long, and a line that says so in place of what is cut.
func (f File) Bounded() File {
	left := len(f.Text) - maxFile
	if left <= 0 {
		return f
	}
	if !f.NewestLast {
		f.Text = f.Text[:maxFile] + fmt.Sprintf("\n(%d bytes more are left out)\n", left)
		return f
	}
	if end := strings.IndexByte(f.Text[left:], '\n'); end >= 0 && left+end+1 < len(f.Text) {
		left += end + 1 // no part of a line
	}
	f.Text = fmt.Sprintf("(the first %d bytes are left out)\n", left) + f.Text[left:]
	return f
}

// Show writes all files for people, so that they read what they are about to send.
func Show(w io.Writer, files []File) error {
	for _, f := range files {
		text := strings.TrimRight(f.Text, "\n")
		if text == "" {
			text = "(empty)"
		}
		if _, err := fmt.Fprintf(w, "==> %s <==\n%s\n\n", f.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// Pack writes the files as a compressed tar archive with one folder.
func Pack(w io.Writer, folder string, files []File, at time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: folder + "/" + f.Name, Mode: 0o600, Size: int64(len(f.Text)),
			ModTime: at, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := io.WriteString(t, f.Text); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
