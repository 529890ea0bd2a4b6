package files

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forged returns a file without a key whose chunks say that they unpack to so many bytes.
func forged(t *testing.T, c Codec, h Head, size uint32, chunks ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := c.NewWriter(&out, h)
	require.NoError(t, err)
	for i, raw := range chunks {
		var packed bytes.Buffer
		f, err := flate.NewWriter(&packed, flate.BestCompression)
		require.NoError(t, err)
		_, err = f.Write(raw)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		p := part{records, uint64(i), cmp.Or(size, uint32(len(raw)))}
		sealed := w.seal.close(p, packed.Bytes())
		start := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{records}, p.size), uint32(len(sealed)))
		w.write(append(start, sealed...))
		w.place++
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// record returns the bytes of a record.
func record(op byte, raw []byte) []byte {
	return append(binary.AppendUvarint([]byte{op}, uint64(len(raw))), raw...)
}

func TestAFileUnpacksToAFewTimesItsSizeAndNoMore(t *testing.T) {
	large := record(put, make([]byte, 8<<20))
	var many [][]byte
	for range 10 {
		many = append(many, record(put, make([]byte, 1<<20)))
	}
	var small, keys []byte
	for i := range 20_000 {
		small = append(small, record(put, nil)...)
		keys = append(keys, record(removed, fmt.Appendf(nil, "\x00%d", i%10))...)
	}
	for name, file := range map[string][]byte{
		"one large object":               forged(t, Codec{}, head, 0, large),
		"many of a megabyte":             forged(t, Codec{}, head, 0, many...),
		"many objects without a content": forged(t, Codec{}, head, 0, small),
		"many keys":                      forged(t, Codec{}, head, 0, keys),
		"more than it says":              forged(t, Codec{}, head, 100, large),
		"less than it says":              forged(t, Codec{}, head, 1<<20, record(put, []byte("x"))),
	} {
		t.Run(name, func(t *testing.T) {
			taken, most := 0, ratioMost*len(file)+freely
			r, err := Codec{}.Open(bytes.NewReader(file))
			require.NoError(t, err)
			for err == nil {
				var chunk *Chunk
				if chunk, err = r.Next(); chunk == nil {
					break
				}
				err = chunk.Each(func(r Record) error {
					if taken += len(r.Raw) + objectCost; r.Raw == nil {
						taken += keyCost - objectCost
					}
					return nil
				})
			}
			require.ErrorIs(t, err, errDamaged)
			assert.LessOrEqual(t, taken, most)
		})
	}
}

func TestWhatPacksTooWellIsWrittenUnpackedAndRead(t *testing.T) {
	for name, c := range codes {
		var all []string
		for range 6 {
			all = append(all, strings.Repeat("x", 3<<20))
		}
		for i := range 30_000 {
			all = append(all, fmt.Sprintf("-ns/gone-%d", i))
		}
		_, got, err := read(c, written(t, c, head, all...))
		require.NoError(t, err, name)
		assert.Equal(t, all, got, name)
	}
}

func TestTheErrorOfEachBoundNamesWhatToSet(t *testing.T) {
	small := Codec{Record: 1000}
	w, err := small.NewWriter(&bytes.Buffer{}, head)
	require.NoError(t, err)
	assert.ErrorContains(t, w.Put(make([]byte, 1001)), "more than 1000 bytes (Tuning.MaxObjectBytes)")
	assert.ErrorContains(t, w.Close(), "Tuning.MaxObjectBytes", "it stays wrong")
	for _, file := range [][]byte{written(t, Codec{}, head, strings.Repeat("x", 1001)), written(t, Codec{}, head, strings.Repeat("x", 1<<20))} {
		_, _, err = read(small, file)
		assert.ErrorContains(t, err, "more than 1000 bytes (Tuning.MaxObjectBytes)")
	}
	long := "-ns/" + strings.Repeat("x", keyMost)
	w, err = Codec{}.NewWriter(&bytes.Buffer{}, head)
	require.NoError(t, err)
	assert.Error(t, w.Remove("ns", long))
	file := written(t, Codec{}, head, strings.Repeat("x", 100_000))
	bound := Codec{Most: int64(len(file))}
	_, _, err = read(bound, file)
	require.ErrorIs(t, err, ErrTooLarge)
	assert.ErrorContains(t, err, "WarmStartMaxBytes")
	assert.ErrorContains(t, err, "unpacked")
	w, err = bound.NewWriter(&bytes.Buffer{}, head)
	require.NoError(t, err)
	require.NoError(t, w.Put(bytes.Repeat([]byte("x"), 100_000)))
	assert.ErrorContains(t, w.Close(), "WarmStartMaxBytes")
}

// TestAHeadAsksNothingOfAServerThatNoProgramAsks: each witness is a request, and its names are in
// the request's path.
func TestAHeadAsksNothingOfAServerThatNoProgramAsks(t *testing.T) {
	for name, change := range map[string]func(*Head){
		"many witnesses":                func(h *Head) { h.Witnesses = slices.Repeat(h.Witnesses, WitnessesMost+1) },
		"the namespace of another path": func(h *Head) { h.Witnesses = []Witness{{Namespace: "x/../../y", Name: "a"}} },
		"the namespace above":           func(h *Head) { h.Witnesses = []Witness{{Namespace: "..", Name: "a"}} },
		"an escaped name":               func(h *Head) { h.Witnesses = []Witness{{Namespace: "ns", Name: "a%2fb"}} },
		"a long name":                   func(h *Head) { h.Witnesses = []Witness{{Name: strings.Repeat("a", wordMost+1)}} },
		"a long version":                func(h *Head) { h.Position = strings.Repeat("1", wordMost+1) },
		"a long name of its base":       func(h *Head) { h.Base = strings.Repeat("1", wordMost+1) },
	} {
		other := head
		change(&other)
		_, err := Codec{}.NewWriter(&bytes.Buffer{}, other)
		require.Error(t, err, name)
		text, err := other.marshal()
		require.NoError(t, err)
		s, err := Codec{}.newSeal(other, text)
		require.NoError(t, err)
		file := append(binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text))), text...)
		_, err = Codec{}.Open(bytes.NewReader(append(file, s.close(part{kind: theHead}, nil)...)))
		assert.ErrorIs(t, err, errDamaged, name)
	}
}

// TestTheKeyOfOneMemberOpensNothingOfAnother: the file says that it is the reader's, and is that of
// another cluster of the same fleet.
func TestTheKeyOfOneMemberOpensNothingOfAnother(t *testing.T) {
	one, other := codes["encrypted"], codes["encrypted"]
	one.Member, other.Member = Member("one", "https://a"), Member("other", "https://a")
	file := written(t, other, head, "poison")
	_, _, err := read(other, file)
	require.NoError(t, err)
	_, _, err = read(one, file)
	assert.ErrorIs(t, err, errDamaged)
	names := make(map[string]bool)
	for _, m := range [][2]string{{"one", "https://a"}, {"other", "https://a"}, {"one", "https://b"}, {"one\",\"https://a", ""}, {"", "one"}, {"one", ""}} {
		of := head.Identity
		of.Member = Member(m[0], m[1])
		names[of.Name()] = true
	}
	assert.Len(t, names, 6)
}

// FuzzAForgedWarmFileTakesLittle: a file without a key, whose seals are right.
func FuzzAForgedWarmFileTakesLittle(f *testing.F) {
	f.Add([]byte("x"), uint32(0), uint16(1))
	f.Add(record(put, []byte("object")), uint32(0), uint16(3))
	f.Add(record(removed, []byte("ns\x00name")), uint32(12), uint16(100))
	f.Fuzz(func(t *testing.T, raw []byte, size uint32, times uint16) {
		c := Codec{Record: 1 << 20}
		chunk := bytes.Repeat(raw, int(times%1000)+1)
		if len(chunk) > 4<<20 {
			return
		}
		file := forged(t, c, head, size, chunk, chunk)
		_, all, err := read(c, file)
		got := 0
		for _, one := range all {
			got += len(one)
		}
		if got > ratioMost*len(file)+freely {
			t.Fatalf("%d bytes of %d: %v", got, len(file), err)
		}
	})
}
