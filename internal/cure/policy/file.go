package policy

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/unthrottle/unthrottle/internal/infile"
)

// ReadRules reads the rules in a file, and why commands in them must not be run ("":
// nothing speaks against it, see Untrusted). Reading ends with ctx.
func ReadRules(ctx context.Context, name string) (rules Rules, untrusted string, err error) {
	name, err = filepath.Abs(name)
	if err != nil {
		return rules, "", err
	}
	f, err := infile.Open(ctx, name)
	if err != nil {
		return rules, "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, MaxConfigBytes+1))
	if err != nil {
		return rules, "", err
	}
	if rules, err = ParseRules(content); err != nil {
		return rules, "", fmt.Errorf("%s: %w", name, err)
	}
	// The file that was read, not one that may have its name by now.
	info, err := f.Stat()
	if err != nil {
		return rules, "", err
	}
	chain := []fs.FileInfo{info}
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		at, err := os.Lstat(dir)
		if err != nil {
			return rules, "", err
		}
		chain = append(chain, at)
		if dir == "/" {
			break
		}
	}
	if link, err := os.Lstat(name); err != nil || !os.SameFile(link, info) {
		return rules, name + " is not the file itself: a symbolic link, or it was replaced", nil
	}
	return rules, Untrusted(name, chain...), nil
}
