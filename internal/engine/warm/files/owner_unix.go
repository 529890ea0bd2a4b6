//go:build unix

package files

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// strange reports whether a file or a folder belongs to another user than that of the program. The
// superuser is no other.
func strange(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return !ok || is.Uid != 0 && int(is.Uid) != os.Geteuid()
}

// othersMay reports whether other users may write a folder, or a file in a folder. A folder itself
// has no in.
func othersMay(info, in fs.FileInfo) bool {
	switch mode := info.Mode(); {
	case mode&0o022 == 0:
		return false
	case mode&0o002 != 0:
		return true
	case in == nil:
		return !groupOfVolume(info)
	}
	return !groupOfVolume(in) || !mine(info) || group(info) != group(in)
}

// groupOfVolume reports whether a folder of the program's user may be written by a group of the
// program, as in a volume of a pod with fsGroup: at each mount, kubelet gives all folders and files
// to this group, lets the group write, and sets the bit setgid of folders. The bit tells such a
// folder from one that the group may write by a loose umask alone.
func groupOfVolume(folder fs.FileInfo) bool {
	const shared = fs.ModeDir | fs.ModeSetgid | 0o020
	return folder.Mode()&shared == shared && mine(folder) && slices.Contains(ownGroups(), group(folder))
}

// mine is stricter than strange: a file of the superuser belongs to the superuser alone.
func mine(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(is.Uid) == os.Geteuid()
}

// group returns the group of a file or a folder, or -1.
func group(info fs.FileInfo) int {
	if is, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(is.Gid)
	}
	return -1
}

// ownGroups returns the groups of the process. Tests replace ownGroups: no test can join a group.
var ownGroups = func() []int {
	all, _ := os.Getgroups() // without them, fewer folders are accepted
	return append(all, os.Getegid())
}
