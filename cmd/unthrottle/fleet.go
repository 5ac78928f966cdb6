package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
)

// fleetProgram answers questions over many hosts. It holds DuckDB, which needs cgo and would not be static.
const fleetProgram = "unthrottle-fleet"

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fleet COMMAND",
		GroupID: groupLook,
		Short:   "How many cores come back over many hosts, from what 'export' kept",
		Long: `Ask questions about the rows that 'unthrottle export' and agents wrote, of any
number of hosts and days.

  fleet report DIR     which services a quota stops, who spends it, and how
                       small each limit may be at the same stops
  fleet plan DIR       which container on which host, so that few are used
  fleet generate       rows of a made-up fleet, of recordings, with its truth

DIR may be s3://BUCKET/PREFIX, of AWS or another store with that protocol.

This starts the program unthrottle-fleet, from the folder of this one or from
PATH, with the same arguments. 'fleet COMMAND --help' shows its flags. 'make
fleet' in the source tree builds it; it needs a C++ compiler.`,
		DisableFlagParsing: true, // they are the other program's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			return startFleet(args)
		},
	}
	return cmd
}

// startFleet replaces this process by the program of the fleet.
func startFleet(args []string) error {
	program, err := findFleet(os.Executable)
	if err != nil {
		return err
	}
	err = unix.Exec(program, append([]string{fleetProgram}, args...), os.Environ())
	return fmt.Errorf("%s: start it: %w", text.Shown(program), err)
}

// findFleet finds the program of the fleet beside this one, or in PATH.
func findFleet(self func() (string, error)) (string, error) {
	folder := "this program's folder"
	if here, err := self(); err == nil {
		if real, err := filepath.EvalSymlinks(here); err == nil {
			here = real
		}
		folder = filepath.Dir(here)
		beside := filepath.Join(folder, fleetProgram)
		if found, err := exec.LookPath(beside); err == nil {
			return found, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s: it is there and cannot be started: %w", text.Shown(beside), err)
		}
	}
	found, err := exec.LookPath(fleetProgram)
	if err != nil {
		return "", fmt.Errorf("%s is neither in %s nor in PATH: 'make fleet' in the source tree builds it into bin "+
			"(it needs Go and a C++ compiler), 'sudo make install-fleet' installs it; the package unthrottle-fleet has it",
			fleetProgram, text.Shown(folder))
	}
	return found, nil
}
