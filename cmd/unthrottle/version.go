package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

// kernelsTried are the releases on which the tests ran whole, on a host or in the lab's guest; others may work.
var kernelsTried = []string{"6.1", "6.12", "6.18", "7.2"}

// build is what this program was built from. A field is null if the build does not tell.
type build struct {
	Release *string `json:"release"` // a tag, such as v0.1.0
	Commit  *string `json:"commit"`
	// Modified: the tree had changes that are in no commit.
	Modified     *bool    `json:"modified"`
	Time         *string  `json:"commit_time"` // RFC 3339
	Go           string   `json:"go"`
	OS           string   `json:"os"`
	Arch         string   `json:"arch"`
	KernelsTried []string `json:"kernels_tried"`
}

func newVersion() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupLook,
		Short:   "Show release, commit, Go and the kernels that were tried",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "version", b)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), b)
			return err
		},
	}
	out.add(cmd)
	return cmd
}

// released is the form of a release's tag.
var released = regexp.MustCompile(`^v?[0-9]+\.[0-9]+`)

// describedAt finds the commit in what git describes: "v0.1.0-3-g0123abc" or a bare "0123abc".
var describedAt = regexp.MustCompile(`^(?:.*-g)?([0-9a-f]{7,40})(?:-dirty)?$`)

// thisBuild is what the linker and the Go command wrote into the program.
func thisBuild() build {
	b := build{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, KernelsTried: slices.Clone(kernelsTried)}
	if released.MatchString(version) {
		b.Release = &version
	}
	if at := describedAt.FindStringSubmatch(version); at != nil {
		dirty := strings.HasSuffix(version, "-dirty")
		b.Commit, b.Modified = &at[1], &dirty
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = &s.Value
		case "vcs.time":
			b.Time = &s.Value
		case "vcs.modified":
			modified := s.Value == "true"
			b.Modified = &modified
		}
	}
	return b
}

// String is the build for people, a line each.
func (b build) String() string {
	or := func(s *string, missing string) string {
		if s == nil {
			return missing
		}
		return *s
	}
	commit := or(b.Commit, "not known")
	if b.Modified != nil && *b.Modified {
		commit += ", with changes"
	}
	if b.Time != nil {
		commit += ", " + *b.Time
	}
	return fmt.Sprintf("unthrottle %s\ncommit     %s\nGo         %s, %s/%s\nkernels    tried on Linux %s\n",
		or(b.Release, "(no release)"), commit, strings.TrimPrefix(b.Go, "go"), b.OS, b.Arch, strings.Join(b.KernelsTried, ", "))
}
