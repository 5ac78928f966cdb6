package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// contents are the files of an archive by their path, which begins with a slash.
type contents map[string][]byte

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func untarred(t *testing.T, data []byte) contents {
	t.Helper()
	found := contents{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if found["/"+strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "/")], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func fileOf(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// members are those of a deb, an ar archive (ar(5)).
func members(t *testing.T, data []byte) contents {
	t.Helper()
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("no ar archive")
	}
	found := contents{}
	for len(rest) >= 60 {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || 60+size > len(rest) {
			t.Fatalf("a member of %d bytes: %v", size, err)
		}
		found["/"+strings.TrimRight(string(rest[:16]), " /")] = rest[60 : 60+size]
		rest = rest[min(60+size+size%2, len(rest)):]
	}
	return found
}

// payload is what an rpm installs: a compressed cpio archive behind the headers, in the form "newc" of cpio(5).
func payload(t *testing.T, data []byte) contents {
	t.Helper()
	for at := 96; at < len(data); at++ {
		next := bytes.Index(data[at:], []byte{0x1f, 0x8b, 8})
		if next < 0 {
			break
		}
		at += next
		z, err := gzip.NewReader(bytes.NewReader(data[at:]))
		if err != nil {
			continue
		}
		if plain, err := io.ReadAll(z); err == nil && bytes.HasPrefix(plain, []byte("07070")) {
			return unpacked(t, plain)
		}
	}
	t.Fatal("no cpio archive in the rpm")
	return nil
}

func unpacked(t *testing.T, rest []byte) contents {
	t.Helper()
	found := contents{}
	for len(rest) >= 110 {
		field := func(i int) int {
			n, err := strconv.ParseInt(string(rest[6+8*i:14+8*i]), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, name := field(1), field(6), field(11)
		begin := (110 + name + 3) &^ 3
		end := (begin + size + 3) &^ 3
		path := string(rest[110 : 110+name-1])
		if path == "TRAILER!!!" {
			break
		}
		if mode&0o170000 == 0o100000 {
			found["/"+strings.TrimLeft(path, "./")] = rest[begin : begin+size]
		}
		rest = rest[end:]
	}
	return found
}

// imageLayer is the one layer of an image, found by its index.
func imageLayer(t *testing.T, data []byte) contents {
	t.Helper()
	all := untarred(t, data)
	var index, manifest struct {
		Manifests, Layers []struct{ Digest string }
	}
	blob := func(digest string) []byte { return all["/blobs/"+strings.Replace(digest, ":", "/", 1)] }
	if err := json.Unmarshal(all["/index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v, %d images", err, len(index.Manifests))
	}
	if err := json.Unmarshal(blob(index.Manifests[0].Digest), &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("manifest: %v, %d layers", err, len(manifest.Layers))
	}
	return untarred(t, unzipped(t, blob(manifest.Layers[0].Digest)))
}
