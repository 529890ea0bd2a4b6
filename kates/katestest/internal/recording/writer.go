package recording

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// mostQueued bounds the bytes that wait to be written. It is more than a disk is late with unless
// something is wrong with it.
const mostQueued = 256 << 20

var (
	errSlow = errors.New("the file cannot be written as fast as answers come: the recording ends early")
	// errClosed is what a second Close returns.
	errClosed = errors.New("the recording is closed already")
)

// Writer writes a file. It is safe for concurrent use. Nobody waits for the file: one goroutine
// writes what is queued, and flushes whenever the queue is empty, so that a crash loses little. It
// ends with Close. After an error nothing more is written; Close returns the error.
type Writer struct {
	started time.Time
	done    chan struct{} // the goroutine has ended

	mu     sync.Mutex
	queue  []record
	queued int // bytes
	err    error
	closed bool
	work   chan struct{} // there is something to do
}

type record struct {
	head head
	data []byte
}

// NewWriter starts a file. Close closes it.
func NewWriter(file io.WriteCloser) *Writer {
	now := time.Now()
	w := &Writer{started: now, done: make(chan struct{}), work: make(chan struct{}, 1)}
	wall := now.UTC()
	w.put(head{Type: typeRecording, Version: Version, Started: &wall}, nil)
	go w.run(file)
	return w
}

// put queues a record, and stamps it. The bytes belong to the writer from then on.
func (w *Writer) put(h head, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.err != nil {
		return
	}
	if w.queued+len(data) > mostQueued {
		w.err = errSlow
		return
	}
	h.At, h.Size = time.Since(w.started).Microseconds(), len(data)
	w.queue = append(w.queue, record{h, data})
	w.queued += len(data)
	w.wake()
}

// wake is called with mu held.
func (w *Writer) wake() {
	select {
	case w.work <- struct{}{}:
	default:
	}
}

// take returns what is queued, and whether that is all there will be.
func (w *Writer) take() (records []record, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	records, w.queue, w.queued = w.queue, nil, 0
	return records, w.closed
}

// run writes until Close. What is queued after an error is dropped.
func (w *Writer) run(file io.WriteCloser) {
	defer close(w.done)
	packed := gzip.NewWriter(file)
	var err error
	for last := false; !last; {
		<-w.work
		var records []record
		records, last = w.take()
		for _, r := range records {
			if err == nil {
				err = r.write(packed)
			}
		}
		if err == nil {
			err = packed.Flush()
		}
		w.fail(err)
	}
	if err == nil {
		err = packed.Close()
	}
	w.fail(errors.Join(err, file.Close()))
}

// fail keeps the first error.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("write the recording: %w", err)
	}
}

// write writes the head as a line of JSON, and the bytes with a line feed behind them.
func (r record) write(to io.Writer) error {
	line, err := json.Marshal(r.head)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(r.data) > 0 {
		line = append(append(line, r.data...), '\n')
	}
	_, err = to.Write(line)
	return err
}

// Close ends the file, and waits until it is written. It returns the first error there was.
func (w *Writer) Close() error {
	w.put(head{Type: typeClose}, nil)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.closed = true
	w.wake()
	w.mu.Unlock()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
