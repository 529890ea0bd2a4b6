package lease

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"sync"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Identities of one process. A candidate that ends, and another that begins later for the same
// Lease, have the same one. So a process that has lost touch with the server for longer than its
// lease does not wait until its own former lease has expired.
//
// The rules:
//
//  1. A default identity is the host's name and a text that follows from the process, the API
//     server and the Lease. The process's part is random: no other process has the identity, but
//     for a copy of this one (a virtual machine that was cloned, or restored twice).
//  2. A candidate takes its identity when it begins to stand, and gives it back when the work that
//     the lease protects has ended. Whoever takes it afterwards may go on with the lease.
//  3. Nobody has an identity that another candidate has at that time. A default identity then gets
//     a number: the lowest that is free. An identity that the user has said is an error.
//  4. If two names of one API server are in use, the default identities differ.
//  5. A Lease is a former candidate's if it is as a candidate of this process wrote it under the
//     identity ([Written]). A copy of the process has written something else.
//
// The identity does not fence. Work is bound to its own Candidate, which never leads again when it
// has lost or resigned (see [Candidate.Held]).
type identities struct {
	mu    lockorder.Mutex[lockorder.Identities]
	taken map[identity]bool
	// written is what was written under the default identities of known servers. There is one for
	// each, for ever: a program has few of them.
	written map[identity]*Written
}

type identity struct{ server, namespace, lease, name string }

var ofProcess identities

// process returns the host's name, and a text that no other process has.
var process = sync.OnceValues(func() ([2]string, error) {
	host, err := os.Hostname()
	return [2]string{host, rand.Text()}, err
})

// TakeIdentity takes the identity of a candidate for a Lease, or of a shard, and fills it in.
// giveBack is called when what the lease protects has ended.
func (s *Settings) TakeIdentity(lease string) (giveBack func(), err error) {
	s.Written = &Written{}
	known := s.Server != ""
	if !known {
		s.Server = rand.Text() // nobody else knows it
	}
	mine := identity{s.Server, s.Namespace, lease, s.Identity}
	if mine.name != "" {
		if !ofProcess.take(mine) {
			return nil, fmt.Errorf("lease %s/%s: this program stands for it already under the identity %q", s.Namespace, lease, mine.name)
		}
		return ofProcess.giveBack(mine), nil
	}
	of, err := process()
	if err != nil {
		return nil, fmt.Errorf("an identity: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{of[1], s.Server, s.Namespace, lease}))
	name := of[0] + "_" + hex.EncodeToString(sum[:16])
	mine.name = name
	for n := 2; !ofProcess.take(mine); n++ {
		mine.name = fmt.Sprintf("%s_%d", name, n)
	}
	s.Identity, s.OwnIdentity = mine.name, true
	if known {
		s.Written = ofProcess.writtenBy(mine)
	}
	return ofProcess.giveBack(mine), nil
}

// take reports whether the identity was free.
func (i *identities) take(one identity) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken[one] {
		return false
	}
	if i.taken == nil {
		i.taken = make(map[identity]bool)
	}
	i.taken[one] = true
	return true
}

// writtenBy returns what candidates of an identity have written.
func (i *identities) writtenBy(one identity) *Written {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.written == nil {
		i.written = make(map[identity]*Written)
	}
	if i.written[one] == nil {
		i.written[one] = &Written{}
	}
	return i.written[one]
}

func (i *identities) giveBack(one identity) func() {
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.taken, one)
	}
}
