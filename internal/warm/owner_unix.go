//go:build unix

package warm

import (
	"io/fs"
	"os"
	"syscall"
)

// strange reports whether a file or a folder belongs to another user than that of the program. The
// superuser is no other.
func strange(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return !ok || is.Uid != 0 && int(is.Uid) != os.Geteuid()
}

// othersMay reports whether a mode lets other users write.
func othersMay(mode fs.FileMode) bool { return mode.Perm()&0o022 != 0 }
