package podlogs

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"
)

func FuzzALogIsCutIntoPiecesThatAreTheLog(f *testing.F) {
	for _, log := range []string{
		"2024-01-01T00:00:00.5Z a\n2024-01-01T00:00:00.5Z\nno time\n", "2024-01-01T00:00:00Z " + "long long long long long\n", "\n\n \n", "x",
		"9999-99-99T00:00:00Z a\n0000-01-01T00:00:00Z b\n", "2024-01-01T00:00:00+99:99 a\n", "2024-01-01T00:00:00,5Z a\r\n\xff",
	} {
		f.Add([]byte(log), uint8(8))
	}
	f.Fuzz(func(t *testing.T, log []byte, most uint8) {
		var cut [][]piece
		for _, r := range []io.Reader{bytes.NewReader(log), iotest.OneByteReader(bytes.NewReader(log))} {
			p := newPieces(r)
			p.most = 1 + int(most)
			var all []piece
			var whole []byte
			for {
				one, err := p.next()
				one.raw, one.text = bytes.Clone(one.raw), bytes.Clone(one.text)
				whole = append(whole, one.raw...)
				if len(one.raw) > p.most || !bytes.HasSuffix(one.raw, one.text) {
					t.Fatalf("%q: %q of at most %d", log, one.raw, p.most)
				}
				all = append(all, one)
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(whole, log) {
				t.Fatalf("%q is cut into %q", log, whole)
			}
			cut = append(cut, all)
		}
		// What was given is recognised when it comes again.
		g := newGiven()
		for i, one := range cut[0] {
			if other := cut[1]; i >= len(other) || !bytes.Equal(one.raw, other[i].raw) || one.stamp != other[i].stamp {
				t.Fatalf("%q: piece %d is %q, and byte by byte another", log, i, one.raw)
			}
			if one.whole {
				g.add(g.line(one))
			}
		}
		r := g.replay()
		for _, l := range g.lines {
			if !r.repeats(l) {
				t.Fatalf("%q: %v is not recognised", log, l)
			}
		}
		if at, ok := g.since(); ok && at.After(g.newest.Add(-overlap).Add(time.Second)) {
			t.Fatalf("%q: resumes at %v, newest %v", log, at, g.newest)
		}
	})
}
