package slo

import (
	"os/user"
	"strconv"
	"syscall"
)

// caller is whom a latency source runs as.
type caller struct {
	// credential is nil for the same user as now.
	credential *syscall.Credential
	// env are the variables that belong to the user.
	env []string
}

// account is what the host knows of a user.
type account struct {
	name, home string
	groups     []uint32
}

// callingUser is whom the command runs as: the user behind sudo when root was
// reached through it, with that user's home and groups, else the same user as
// now. A user that the host does not know has no home and no other groups.
func callingUser(uid int, getenv func(string) string, lookUp func(uid string) (account, error)) caller {
	if uid != 0 {
		return caller{}
	}
	sudoUID, err := strconv.ParseUint(getenv("SUDO_UID"), 10, 32)
	if err != nil || sudoUID == 0 {
		return caller{}
	}
	sudoGID, err := strconv.ParseUint(getenv("SUDO_GID"), 10, 32)
	if err != nil {
		return caller{}
	}
	known, err := lookUp(strconv.FormatUint(sudoUID, 10))
	if err != nil {
		known = account{name: getenv("SUDO_USER"), home: "/"}
	}
	return caller{&syscall.Credential{Uid: uint32(sudoUID), Gid: uint32(sudoGID), Groups: known.groups},
		[]string{"HOME=" + known.home, "USER=" + known.name, "LOGNAME=" + known.name}}
}

// lookUp asks the host's user database.
func lookUp(uid string) (account, error) {
	u, err := user.LookupId(uid)
	if err != nil {
		return account{}, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return account{}, err
	}
	known := account{name: u.Username, home: u.HomeDir}
	for _, id := range ids {
		gid, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return account{}, err
		}
		known.groups = append(known.groups, uint32(gid))
	}
	return known, nil
}
