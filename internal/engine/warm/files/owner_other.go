//go:build !unix

package files

import "io/fs"

// strange is false: what a mode says of other users has no meaning here.
func strange(fs.FileInfo) bool { return false }

func othersMay(_, _ fs.FileInfo) bool { return false }
