// Command image packs one static program as a container image for one processor: an OCI image layout in a tar file, which
// also has the manifest.json that `docker load` of older versions reads. The image holds the program, empty /tmp, /etc and
// /var/lib/unthrottle, and nothing else: no shell, no libraries. The same program gives the same bytes. --name is that of the
// program and of the image.
//
//	image --name unthrottle --arch amd64 --version v1.2.3 --epoch 1764000000 --program bin/unthrottle --output unthrottle.oci.tar
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type options struct {
	name, arch, version, program, output string
	epoch                                int64
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "unthrottle", "name of the program and of the image")
	flag.StringVar(&o.arch, "arch", "amd64", "processor")
	flag.StringVar(&o.version, "version", "dev", "version of the program")
	flag.Int64Var(&o.epoch, "epoch", 0, "time in all headers, in seconds since 1970")
	flag.StringVar(&o.program, "program", "", "static program")
	flag.StringVar(&o.output, "output", "", "tar file to write")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	program, err := os.ReadFile(o.program)
	if err != nil {
		return err
	}
	at := time.Unix(o.epoch, 0).UTC()
	files, err := layer(o.name, program, at)
	if err != nil {
		return err
	}
	image, err := pack(o, files, at)
	if err != nil {
		return err
	}
	return write(o, image, at)
}

// layer is the tar of the image's files.
func layer(name string, program []byte, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []tar.Header{
		{Name: "etc/", Mode: 0o755}, {Name: "tmp/", Mode: 0o1777}, {Name: "usr/", Mode: 0o755}, {Name: "usr/bin/", Mode: 0o755},
		{Name: "usr/bin/" + name, Mode: 0o755, Size: int64(len(program))},
		{Name: "var/", Mode: 0o755}, {Name: "var/lib/", Mode: 0o755}, {Name: "var/lib/unthrottle/", Mode: 0o700},
	} {
		h.ModTime, h.Format = at, tar.FormatUSTAR
		h.Typeflag = tar.TypeReg
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(program); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func pack(o options, files []byte, at time.Time) (v1.Image, error) {
	content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)),
			nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	if image, err = mutate.Append(image,
		mutate.Addendum{Layer: content, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "unthrottle, static"}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = o.arch, "linux", v1.Time{Time: at}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/" + o.name},
		Env:        []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    o.name,
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// write writes the layout and packs it, file by file in the order of their names.
func write(o options, image v1.Image, at time.Time) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := o.name + ":" + o.version
	if err := index.AppendImage(image, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": o.version, "io.containerd.image.name": "docker.io/library/" + name,
	}), layout.WithPlatform(v1.Platform{OS: "linux", Architecture: o.arch})); err != nil {
		return err
	}
	if err := forDocker(dir, name, image); err != nil {
		return err
	}
	var names []string
	if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	}); err != nil {
		return err
	}
	slices.Sort(names)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range names {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: inside, Mode: 0o644, Size: int64(len(data)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(o.output, out.Bytes(), 0o644)
}

// forDocker adds manifest.json, which names the layout's blobs in the words of `docker save`.
func forDocker(dir, name string, image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	text := fmt.Sprintf("[{\"Config\":%q,\"RepoTags\":[%q],\"Layers\":[%q]}]\n", blob(manifest.Config.Digest), name,
		blob(manifest.Layers[0].Digest))
	return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o644)
}
