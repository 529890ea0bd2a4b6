package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	key   = bytes.Repeat([]byte{7}, KeyBytes)
	codes = map[string]Codec{"plain": {}, "encrypted": {Key: key}}
	head  = Head{
		Identity: Identity{Format: Format, Origin: Origin{"member", "uid", "v1.36.3", "hash"}, Query: Query{Resource: "v1/pods", Labels: "a=b"}, Packing: "untyped"},
		ID:       "id", Base: "base", Position: "12", Saved: time.Unix(1, 0).UTC(), Objects: 3,
		Witnesses: []Witness{{"ns", "a", "u", "11"}},
	}
)

// written returns a file with records: an object for a text, and a removal for "-namespace/name".
func written(t require.TestingT, c Codec, h Head, all ...string) []byte {
	var out bytes.Buffer
	w, err := c.NewWriter(&out, h)
	require.NoError(t, err)
	for _, one := range all {
		if gone, ok := strings.CutPrefix(one, "-"); ok {
			namespace, name, _ := strings.Cut(gone, "/")
			require.NoError(t, w.Remove(namespace, name))
			continue
		}
		require.NoError(t, w.Put([]byte(one)))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// read returns the head and the records of a whole file.
func read(c Codec, file []byte) (h Head, all []string, err error) {
	r, err := c.Open(bytes.NewReader(file))
	if err != nil {
		return h, nil, err
	}
	for {
		chunk, err := r.Next()
		if err != nil || chunk == nil {
			return r.Head, all, err
		}
		if err := chunk.Each(func(one Record) error {
			if one.Raw == nil {
				all = append(all, "-"+one.Namespace+"/"+one.Name)
			} else {
				all = append(all, string(one.Raw))
			}
			return nil
		}); err != nil {
			return r.Head, nil, err
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, c := range codes {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			records := rapid.SliceOf(rapid.OneOf(
				rapid.StringMatching(`[a-z]{0,40}`), rapid.Just(strings.Repeat("large ", 100_000)), rapid.Just("-ns/gone"), rapid.Just("-/gone"),
			)).Draw(t, "records")
			h, got, err := read(c, written(t, c, head, records...))
			require.NoError(t, err)
			h.Salt = nil
			assert.Equal(t, head, h)
			require.Len(t, got, len(records))
			for i := range records {
				require.Equal(t, records[i], got[i])
			}
		}))
	}
}

func TestADamagedFileIsAnErrorWhereverItIsDamaged(t *testing.T) {
	for name, c := range codes {
		t.Run(name, func(t *testing.T) {
			file := written(t, c, head, "one", "two", "-ns/three")
			_, _, err := read(c, file)
			require.NoError(t, err)
			for i := range file {
				broken := bytes.Clone(file)
				broken[i] ^= 1
				_, _, err := read(c, broken)
				require.Error(t, err, "byte %d", i)
				_, _, err = read(c, file[:i])
				require.Error(t, err, "cut at byte %d", i)
			}
			_, _, err = read(c, append(bytes.Clone(file), 0))
			require.ErrorIs(t, err, errDamaged)
		})
	}
}

func TestAChunkCountsOnlyInItsFileAndPlace(t *testing.T) {
	for name, c := range codes {
		t.Run(name, func(t *testing.T) {
			large := strings.Repeat("x", chunkAim)
			other := head
			other.ID = "other"
			a, b := written(t, c, head, large, large), written(t, c, other, large, large)
			start := func(file []byte) int { return bytes.Index(file, []byte{'r'}) }
			// Chunks are equally long: their records are equal.
			at := func(file []byte) int {
				r, err := c.Open(bytes.NewReader(file))
				require.NoError(t, err)
				chunk, err := r.Next()
				require.NoError(t, err)
				return 9 + len(chunk.sealed)
			}
			length := at(a)
			require.Equal(t, length, at(b))
			first := func(file []byte) int {
				r := bytes.NewReader(file)
				_, err := c.Open(r)
				require.NoError(t, err)
				return len(file) - r.Len()
			}
			_ = start
			fa, fb := first(a), first(b)
			swapped := bytes.Clone(a)
			copy(swapped[fa:], a[fa+length:fa+2*length])
			copy(swapped[fa+length:], a[fa:fa+length])
			if !bytes.Equal(swapped, a) {
				_, _, err := read(c, swapped)
				require.ErrorIs(t, err, errDamaged, "in another place")
			}
			foreign := bytes.Clone(a)
			copy(foreign[fa:], b[fb:fb+length])
			_, _, err := read(c, foreign)
			require.ErrorIs(t, err, errDamaged, "of another file")
			short := append(bytes.Clone(a[:fa]), a[fa+2*length:]...)
			_, _, err = read(c, short)
			require.ErrorIs(t, err, errDamaged, "without its chunks")
		})
	}
}

func TestAnEncryptedFileShowsNothingAndNeedsItsKey(t *testing.T) {
	secret := "hunter2hunter2hunter2"
	file := written(t, codes["encrypted"], head, secret, secret)
	assert.NotContains(t, string(file), secret)
	assert.NotEqual(t, file, written(t, codes["encrypted"], head, secret, secret), "each file has a key of its own")
	for name, c := range map[string]Codec{
		"no key":      {},
		"another key": {Key: bytes.Repeat([]byte{8}, KeyBytes)},
		"no such key": {Key: []byte("short")},
	} {
		_, _, err := read(c, file)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), secret)
	}
	_, _, err := read(codes["encrypted"], written(t, Codec{}, head, "plain"))
	assert.ErrorContains(t, err, "not encrypted")
	_, err = Codec{Key: []byte("short")}.NewWriter(io.Discard, head)
	assert.Error(t, err)
}

func TestAFileThatIsTooLargeIsNeitherWrittenNorRead(t *testing.T) {
	file := written(t, Codec{}, head, "one")
	exact, less := Codec{Most: int64(len(file))}, Codec{Most: int64(len(file)) - 1}
	assert.Equal(t, file, written(t, exact, head, "one"))
	_, _, err := read(exact, file)
	require.NoError(t, err)
	_, _, err = read(less, file)
	require.ErrorIs(t, err, ErrTooLarge)
	w, err := less.NewWriter(io.Discard, head)
	require.NoError(t, err)
	require.NoError(t, w.Put([]byte("one")))
	require.ErrorIs(t, w.Close(), ErrTooLarge)
}

func TestAnotherFormatIsNotRead(t *testing.T) {
	other := head
	other.Format = Format + 1
	_, _, err := read(Codec{}, written(t, Codec{}, other))
	assert.ErrorContains(t, err, fmt.Sprintf("format %d", Format+1))
	_, _, err = read(Codec{}, []byte("what is this, and why is it here?"))
	assert.ErrorContains(t, err, "no file of a warm start")
}

func TestALengthThatIsALieTakesNoMemory(t *testing.T) {
	file := written(t, Codec{}, head)
	start := len(file) - 9 - sealBytes - 2
	for file[start] != theLast { // an empty chunk has a few bytes
		start--
	}
	lie := append(bytes.Clone(file[:start]), 'r', 0, 0, 0, 9, 0x03, 0xff, 0xff, 0xff)
	allocated := testing.AllocsPerRun(1, func() { _, _, _ = read(Codec{}, lie) })
	assert.Less(t, allocated, 1000.0)
	_, _, err := read(Codec{}, lie)
	assert.ErrorIs(t, err, errDamaged)
}

func TestAnErrorOfTheWriterBelowIsThatOfTheFile(t *testing.T) {
	full := errors.New("the disk is full")
	_, err := Codec{}.NewWriter(failing{full}, head)
	assert.ErrorIs(t, err, full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzWarmFile(f *testing.F) {
	for _, c := range codes {
		f.Add(written(f, c, head, "one", "two", "-ns/three"), 0, byte(1))
		f.Add(written(f, c, head), 40, byte(9))
	}
	f.Add([]byte(magic), 3, byte(2))
	whole := map[string]bool{"onetwo-ns/three": true, "": true}
	f.Fuzz(func(t *testing.T, file []byte, at int, flip byte) {
		if len(file) > 0 {
			file = bytes.Clone(file)
			file[((at%len(file))+len(file))%len(file)] ^= flip
		}
		for _, c := range codes {
			if _, all, err := read(c, file); err == nil && !whole[strings.Join(all, "")] {
				t.Fatalf("%q was read, and never written", all)
			}
		}
	})
}
