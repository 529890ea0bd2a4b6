package warm

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// ErrTooLarge is a file that has more bytes than it may have.
var ErrTooLarge = errors.New("the file is larger than it may be")

// Writer writes a file. Close ends it: without that it is of no use to a reader.
type Writer struct {
	w       io.Writer
	seal    *seal
	most    int64
	written int64
	place   uint64
	raw     []byte
	packed  bytes.Buffer
	flate   *flate.Writer
	err     error
}

// NewWriter begins a file. It fills in the head's salt.
func (c Codec) NewWriter(w io.Writer, h Head) (*Writer, error) {
	h.Salt = c.salt()
	text, err := h.marshal()
	if err != nil {
		return nil, err
	}
	s, err := c.newSeal(h, text)
	if err != nil {
		return nil, err
	}
	compressor, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	out := &Writer{w: w, seal: s, most: c.Most, flate: compressor}
	first := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text)))
	out.write(append(append(first, text...), s.close(theHead, 0, nil)...))
	return out, out.err
}

// Put writes an object in wire form.
func (w *Writer) Put(raw []byte) error { return w.record(put, raw) }

// Remove writes that an object is gone.
func (w *Writer) Remove(namespace, name string) error {
	return w.record(removed, append(append([]byte(namespace), 0), name...))
}

func (w *Writer) record(op byte, raw []byte) error {
	w.raw = append(w.raw, op)
	w.raw = binary.AppendUvarint(w.raw, uint64(len(raw)))
	w.raw = append(w.raw, raw...)
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
	w.packed.Reset()
	w.flate.Reset(&w.packed)
	_, err := w.flate.Write(w.raw)
	if err == nil {
		err = w.flate.Close()
	}
	if err != nil {
		w.err = fmt.Errorf("compress: %w", err)
		return
	}
	sealed := w.seal.close(kind, w.place, w.packed.Bytes())
	w.place++
	w.raw = w.raw[:0]
	w.write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(sealed))))
	w.write(sealed)
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
