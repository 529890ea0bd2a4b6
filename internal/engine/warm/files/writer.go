package files

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// magic begins each file.
const magic = "kates-warm\n"

// The kinds of parts.
const (
	theHead  byte = 'h'
	records  byte = 'r'
	theLast  byte = 'l'
	put      byte = 1 // a record with an object
	removed  byte = 2 // a record with the key of an object that is gone
	chunkAim      = 512 << 10
)

// Writer writes a file. Close ends it: without that it is of no use to a reader.
type Writer struct {
	w       io.Writer
	seal    *seal
	most    int64
	record  int64 // the bytes that a record may have
	all     *unpacking
	written int64
	place   uint64
	raw     []byte
	cost    int // of the records in raw
	packed  bytes.Buffer
	err     error
}

// packers compress. Each takes a megabyte.
var (
	packers = packersOf(flate.BestSpeed)
	storers = packersOf(flate.NoCompression)
)

func packersOf(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := flate.NewWriter(io.Discard, level)
		if err != nil {
			panic(err) // there is that level
		}
		return w
	}}
}

// NewWriter begins a file. It fills in the head's salt.
func (c Codec) NewWriter(w io.Writer, h Head) (*Writer, error) {
	h.Salt = c.salt()
	if err := h.check(); err != nil {
		return nil, err
	}
	text, err := h.marshal()
	if err != nil {
		return nil, err
	}
	s, err := c.newSeal(h, text)
	if err != nil {
		return nil, err
	}
	out := &Writer{w: w, seal: s, most: c.Most, record: c.record(), all: c.unpacking()}
	first := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text)))
	out.write(append(append(first, text...), s.close(part{kind: theHead}, nil)...))
	return out, out.err
}

// Put writes an object in wire form.
func (w *Writer) Put(raw []byte) error { return w.add(put, raw) }

// Remove writes that an object is gone.
func (w *Writer) Remove(namespace, name string) error {
	return w.add(removed, append(append([]byte(namespace), 0), name...))
}

func (w *Writer) add(op byte, raw []byte) error {
	if most := recordMost(op, w.record); w.err == nil && int64(len(raw)) > most {
		w.err = tooLong(most)
	}
	if w.err != nil {
		return w.err
	}
	w.raw = append(w.raw, op)
	w.raw = binary.AppendUvarint(w.raw, uint64(len(raw)))
	w.raw = append(w.raw, raw...)
	w.cost += costOf(op)
	if len(w.raw) >= chunkAim {
		w.chunk(records)
	}
	return w.err
}

// Close ends the file. It does not close the writer below.
func (w *Writer) Close() error {
	if len(w.raw) > 0 {
		w.chunk(records)
	}
	w.chunk(theLast)
	return w.err
}

// chunk writes what was collected.
func (w *Writer) chunk(kind byte) {
	if w.err != nil {
		return
	}
	if w.err = w.pack(packers); w.err == nil && !w.all.allows(w.packed.Len(), len(w.raw)+w.cost) {
		w.err = w.pack(storers)
	}
	if w.err == nil {
		w.err = w.all.chunk(w.packed.Len(), len(w.raw))
	}
	if w.err == nil {
		w.err = w.all.costs(w.cost)
	}
	if w.err != nil {
		return
	}
	p := part{kind, w.place, uint32(len(w.raw))}
	sealed := w.seal.close(p, w.packed.Bytes())
	w.place++
	w.raw, w.cost = w.raw[:0], 0
	start := binary.BigEndian.AppendUint32([]byte{kind}, p.size)
	w.write(binary.BigEndian.AppendUint32(start, uint32(len(sealed))))
	w.write(sealed)
}

// pack compresses what was collected.
func (w *Writer) pack(by *sync.Pool) error {
	w.packed.Reset()
	pack := by.Get().(*flate.Writer)
	defer by.Put(pack)
	pack.Reset(&w.packed)
	_, err := pack.Write(w.raw)
	if err == nil {
		err = pack.Close()
	}
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	return nil
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if w.written += int64(len(b)); w.most > 0 && w.written > w.most {
		w.err = fmt.Errorf("%w: %d bytes", ErrTooLarge, w.most)
		return
	}
	_, w.err = w.w.Write(b)
}
