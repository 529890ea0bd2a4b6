package golden

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	updateFlag  = "update"
	ownFlag     = "katestest.update" // the same, by a name that nobody else has
	defineFlag  = "katestest.define-update"
	howToUpdate = "go test -update"
)

var update bool

// In a test binary there is the flag -katestest.update. The flag -update is defined only if it is
// used, and only if the test package has none of that name. Packages are initialized before those
// that import them, so nobody can know that here. Therefore a flag is put before all others: when
// it is parsed, the flags of all packages are known.
func init() {
	if !testing.Testing() || flag.Lookup(ownFlag) != nil {
		return
	}
	flag.BoolVar(&update, ownFlag, false, "write golden files (katestest.Golden); -update does it, too")
	if len(os.Args) > 1 && slices.ContainsFunc(os.Args[1:], isUpdate) {
		flag.BoolFunc(defineFlag, "defines -update, if the package has no such flag", defineUpdate)
		os.Args = slices.Insert(os.Args, 1, "--"+defineFlag)
	}
}

func isUpdate(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "-"+updateFlag || name == "--"+updateFlag
}

func defineUpdate(string) error {
	if flag.Lookup(updateFlag) == nil {
		flag.BoolVar(&update, updateFlag, update, "write golden files (katestest.Golden)")
	}
	return nil
}

// Updating reports whether golden files are to be written: the flag -update is set, or
// -katestest.update is. If the test package has a flag -update of its own, that is the one, if it
// is a boolean.
func Updating() bool {
	if f := flag.Lookup(updateFlag); f != nil {
		if getter, is := f.Value.(flag.Getter); is {
			if set, is := getter.Get().(bool); is && set {
				return true
			}
		}
	}
	return update
}
