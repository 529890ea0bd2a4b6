package warm

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

// owned is what a file system says of a file of another user.
type owned struct {
	fs.FileInfo
	by   uint32
	mode fs.FileMode
}

func (o owned) Sys() any          { return &syscall.Stat_t{Uid: o.by} }
func (o owned) Mode() fs.FileMode { return o.mode }

func TestWhatOtherUsersMayWriteOrHaveMadeIsRefused(t *testing.T) {
	me := uint32(os.Geteuid())
	for _, c := range []struct {
		by   uint32
		mode fs.FileMode
		ok   bool
	}{
		{me, fs.ModeDir | 0o700, true}, {me, fs.ModeDir | 0o755, true}, {0, fs.ModeDir | 0o755, true},
		{me, fs.ModeDir | 0o775, false}, {me, fs.ModeDir | 0o757, false}, {0, fs.ModeDir | fs.ModeSticky | 0o777, false},
		{me + 1, fs.ModeDir | 0o700, false}, {me, 0o600, true}, {me, 0o620, false}, {me + 1, 0o600, false},
		{me, fs.ModeSymlink | 0o777, true}, {me + 1, fs.ModeSymlink | 0o777, false},
	} {
		err := own("path", owned{by: c.by, mode: c.mode})
		assert.Equal(t, c.ok, err == nil, "%d %s: %v", c.by, c.mode, err)
		if err != nil {
			assert.ErrorContains(t, err, "name a folder of the program's own")
		}
	}
}

func TestAFolderThatOtherUsersMayWriteIsNeitherReadNorWrittenNorTidied(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, d.Save(t.Context(), "a.base", text("one")))
	old := time.Now().Add(-2 * unusedMost)
	require.NoError(t, os.Chtimes(filepath.Join(d.Path, "a.base"+suffix), old, old))
	for _, mode := range []fs.FileMode{0o770, 0o777, 0o707, 0o777 | fs.ModeSticky} {
		require.NoError(t, os.Chmod(d.Path, mode))
		_, err := d.Load(t.Context(), "a.base")
		assert.ErrorContains(t, err, "other users may write it")
		err = d.Save(t.Context(), "b.base", func(io.Writer) error { t.Error("written"); return nil })
		assert.ErrorContains(t, err, "chmod go-w")
		assert.ErrorContains(t, d.Tidy(time.Now()), "chmod go-w")
	}
	within := Dir{filepath.Join(d.Path, "own")}
	require.NoError(t, within.Save(t.Context(), "a.base", text("two")), "what the error says works")
	require.NoError(t, os.Chmod(d.Path, 0o700))
	assert.Equal(t, "one", content(t, d, "a.base"))
}

func TestAFileIsNeitherALinkNorAPipeNorWritableByOthers(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "folder")}
	require.NoError(t, d.Save(t.Context(), "real", text("one")))
	at := func(name string) string { return filepath.Join(d.Path, name+suffix) }
	require.NoError(t, os.Symlink("real"+suffix, at("within")))
	require.NoError(t, os.Symlink("/etc/passwd", at("outside")))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	for _, name := range []string{"within", "outside", "pipe", "folder"} {
		_, err := d.Load(t.Context(), name)
		assert.ErrorContains(t, err, "it is no file", name)
	}
	require.NoError(t, os.Chmod(at("real"), 0o666))
	_, err := d.Load(t.Context(), "real")
	assert.ErrorContains(t, err, "other users may write it")
	require.NoError(t, d.Save(t.Context(), "outside", text("two")), "a link is replaced and not followed")
	assert.Equal(t, "two", content(t, d, "outside"))
	link := Dir{filepath.Join(t.TempDir(), "link")}
	require.NoError(t, os.Symlink(d.Path, link.Path))
	assert.Equal(t, "two", content(t, link, "outside"), "a link of the program's own to a folder of its own")
	require.NoError(t, os.Chmod(d.Path, 0o777))
	_, err = link.Load(t.Context(), "outside")
	assert.ErrorContains(t, err, "other users may write it")
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
