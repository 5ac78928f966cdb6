package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Names of the images: one runs commands, the other sleeps, to hold a pod's namespaces.
const (
	imageName = "e2e.local/shell:1"
	pauseName = "e2e.local/pause:1"
)

func (s *suite) rootfs() string { return filepath.Join(s.dir, "rootfs.tar") }
func (s *suite) layout() string { return filepath.Join(s.dir, "oci.tar") }

// makeImages makes images of busybox alone: as a root file system for `docker import`, and as an OCI layout for
// `ctr image import`.
func (s *suite) makeImages() error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	root, err := archive(func(w *tar.Writer) error {
		errs := []error{file(w, "bin/busybox", program)}
		for _, name := range []string{"sh", "sleep", "echo", "cat"} {
			errs = append(errs, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name,
				Linkname: "busybox", Mode: 0o777}))
		}
		for _, name := range []string{"dev", "etc", "proc", "sys", "tmp"} {
			errs = append(errs, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	oci, err := ociLayout(root)
	return errors.Join(err, os.WriteFile(s.rootfs(), root, 0o600), os.WriteFile(s.layout(), oci, 0o600))
}

// ociLayout is both images as the OCI image specification has it.
func ociLayout(layer []byte) ([]byte, error) {
	type object = map[string]any
	return archive(func(w *tar.Writer) error {
		var errs []error
		blob := func(kind string, data []byte) object {
			sum := fmt.Sprintf("%x", sha256.Sum256(data))
			errs = append(errs, file(w, "blobs/sha256/"+sum, data))
			return object{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + sum, "size": len(data)}
		}
		text := func(o object) []byte {
			data, err := json.Marshal(o)
			errs = append(errs, err)
			return data
		}
		filled := blob("layer.v1.tar", layer)
		var manifests []object
		for name, entrypoint := range map[string][]string{imageName: nil, pauseName: {"/bin/sleep", "1000000"}} {
			config := blob("config.v1+json", text(object{"architecture": runtime.GOARCH, "os": "linux",
				"config": object{"Env": []string{"PATH=/bin"}, "Entrypoint": entrypoint},
				"rootfs": object{"type": "layers", "diff_ids": []any{filled["digest"]}}}))
			manifest := blob("manifest.v1+json", text(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
				"config": config, "layers": []object{filled}}))
			manifest["annotations"] = object{"io.containerd.image.name": name}
			manifests = append(manifests, manifest)
		}
		errs = append(errs, file(w, "index.json", text(object{"schemaVersion": 2, "manifests": manifests})),
			file(w, "oci-layout", text(object{"imageLayoutVersion": "1.0.0"})))
		return errors.Join(errs...)
	})
}

func archive(fill func(*tar.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(fill(w), w.Close())
	return b.Bytes(), err
}

func file(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
