// Package install tests what users install: what `make install` puts where, that `make uninstall` leaves nothing of it,
// and that deb, rpm, tarball and image hold the same static program, which is the same bytes each time.
//
// # Limits
//
// The packages are unpacked and not installed: the maintainer scripts do not run here. The test of the packages needs the
// module of the packager, which the go command fetches once.
package install
