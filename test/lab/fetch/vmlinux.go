package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// maxVmlinux bounds an unpacked kernel, in bytes. 6.18's has 60 MiB.
const maxVmlinux = 1 << 30

// compressions are the first bytes of a compressed kernel in a bzImage, and the tool that unpacks it (the kernel's
// scripts/extract-vmlinux uses the same marks).
var compressions = []struct {
	tool  string
	magic []byte
}{
	{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}},
	{"lz4", []byte{0x02, 0x21, 0x4c, 0x18}},
}

var elfMagic = []byte("\x7fELF")

// extractVmlinux writes the ELF kernel inside a bzImage to a file. QEMU boots that one by PVH, without decompression in
// the guest. command makes the command for a tool.
func extractVmlinux(ctx context.Context, bzImage, to string,
	command func(ctx context.Context, tool string, args ...string) *exec.Cmd) error {
	image, err := os.ReadFile(bzImage)
	if err != nil {
		return err
	}
	var lastErr error
	for _, c := range compressions {
		for _, at := range offsets(image, c.magic) {
			vmlinux, err := decompress(command(ctx, c.tool, "-dc"), image[at:])
			if bytes.HasPrefix(vmlinux, elfMagic) && len(vmlinux) < maxVmlinux {
				return os.WriteFile(to, vmlinux, 0o644)
			}
			lastErr = err
		}
	}
	return errors.Join(fmt.Errorf("%s: no kernel compressed with zstd or LZ4 in it", bzImage), lastErr)
}

// offsets lists the places of mark in data, at most a few dozen, because each costs a process.
func offsets(data, mark []byte) []int {
	var found []int
	for at := 0; len(found) < 32; {
		i := bytes.Index(data[at:], mark)
		if i < 0 {
			break
		}
		found = append(found, at+i)
		at += i + 1
	}
	return found
}

// decompress returns the tool's output for data. The tools complain about the bytes that follow the compressed part. So
// their error counts only if there is no output.
func decompress(tool *exec.Cmd, data []byte) ([]byte, error) {
	tool.Stdin = bytes.NewReader(data)
	var errs bytes.Buffer
	tool.Stderr = &errs
	pipe, err := tool.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := tool.Start(); err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(pipe, maxVmlinux))
	if err != nil {
		return nil, err
	}
	if err := tool.Wait(); err != nil {
		return out, fmt.Errorf("%s: %w: %.200s", tool.Path, err, errs.String())
	}
	return out, nil
}
