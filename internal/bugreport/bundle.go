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
}

// maxFile bounds a file of a report.
const maxFile = 1 << 20

// Bounded cuts a text that is too long, and says so.
func Bounded(text string) string {
	if len(text) <= maxFile {
		return text
	}
	return text[:maxFile] + fmt.Sprintf("\n(%d bytes more are left out)\n", len(text)-maxFile)
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
