package files

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// A file without a key may be anybody's, and so may one with a key whose head was exchanged. So a
// file says nothing that takes memory before it was checked. What it unpacks to is bounded by its
// own size, since a good packer makes hundreds of megabytes of one.
const (
	// ratioMost is how many bytes a byte of a file may stand for, and freely how many a file may
	// have beyond that. What packs better is not compressed.
	ratioMost = 64
	freely    = 1 << 20
	// objectCost and keyCost are what a record counts beside its bytes: the memory of an object
	// without content. A UID alone takes as much of a file as that allows.
	objectCost = 1 << 10
	keyCost    = 200
	// unpackedMost is how many times as many bytes as a file may have, its records may have.
	unpackedMost = 16

	headMost = 1 << 20 // bytes of a head
	wordMost = 1 << 10 // bytes of a version, or of a part of a witness
	keyMost  = 4 << 10 // bytes of the key of an object that is gone
	// RecordMost is how many bytes a record may have where nothing is said.
	RecordMost = 64 << 20
	// WitnessesMost is how many witnesses a file may have: each is a question to the server.
	WitnessesMost = 6
)

var (
	// ErrTooLarge is a file that has more bytes than it may have.
	ErrTooLarge = errors.New("the file is larger than it may be (WarmStartMaxBytes)")

	errUnpacks = fmt.Errorf("%w: it unpacks to more than %d times its size", errDamaged, ratioMost)
)

func tooLong(most int64) error {
	return fmt.Errorf("a record has more than %d bytes (Tuning.MaxObjectBytes)", most)
}

// unpacking counts what a file unpacks to. It is safe for concurrent use.
type unpacking struct {
	most              int64 // bytes of the records; 0: any number
	packed, raw, cost atomic.Int64
}

func (c Codec) unpacking() *unpacking {
	return &unpacking{most: min(c.Most, math.MaxInt64/unpackedMost) * unpackedMost}
}

// allows reports whether a chunk of so many bytes may cost so much.
func (u *unpacking) allows(packed, cost int) bool {
	return u.cost.Load()+int64(cost) <= ratioMost*(u.packed.Load()+int64(packed))+freely
}

// chunk counts a chunk.
func (u *unpacking) chunk(packed, raw int) error {
	if all := u.raw.Add(int64(raw)); u.most > 0 && all > u.most {
		return fmt.Errorf("%w: unpacked it has more than %d bytes", ErrTooLarge, u.most)
	}
	u.packed.Add(int64(packed))
	return u.costs(raw)
}

// costs counts what a chunk, or a record, costs.
func (u *unpacking) costs(n int) error {
	if u.cost.Add(int64(n)) > ratioMost*u.packed.Load()+freely {
		return errUnpacks
	}
	return nil
}

// costOf is what a record counts beside its bytes.
func costOf(op byte) int {
	if op == removed {
		return keyCost
	}
	return objectCost
}

// recordMost is how many bytes a record may have.
func recordMost(op byte, most int64) int64 {
	if op == removed {
		return keyMost
	}
	return most
}
