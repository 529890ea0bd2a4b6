package secrecy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The files in the folder of a run.
const (
	secretsFile = "secrets"
	saidFile    = "said"
	outFile     = "standard output"
	errFile     = "standard error"
)

// book is the folder of this process. Without one nothing is learned or said.
var book struct {
	mu            sync.Mutex
	learned       map[string]bool
	secrets, said *os.File
}

// entry is a line of the file of secrets.
type entry struct {
	What  string `json:"what"`
	Value []byte `json:"value"`
}

// open makes the book of this process.
func open(dir string) (err error) {
	book.mu.Lock()
	defer book.mu.Unlock()
	book.learned = map[string]bool{}
	if book.secrets, err = appending(dir, secretsFile); err == nil {
		book.said, err = appending(dir, saidFile)
	}
	return err
}

func appending(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// shut closes the book.
func shut() {
	book.mu.Lock()
	defer book.mu.Unlock()
	_, _ = book.secrets.Close(), book.said.Close()
	book.secrets, book.said = nil, nil
}

// Learn notes a secret: nobody may say it at any time of the run.
func Learn(what string, value []byte) {
	book.mu.Lock()
	defer book.mu.Unlock()
	if book.secrets == nil || book.learned[string(value)] {
		return
	}
	book.learned[string(value)] = true
	line, err := json.Marshal(entry{what, value})
	if err == nil {
		_, err = book.secrets.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("note a secret: %v", err)) // the run would be worth nothing
	}
}

// Harmless says that values of Secrets are no secrets, such as a name that a test looks for. It is
// called before they are written.
func Harmless(values ...string) {
	book.mu.Lock()
	defer book.mu.Unlock()
	for _, value := range values {
		if book.learned != nil {
			book.learned[value] = true
		}
	}
}

// Say notes a text in which no secret may be.
func Say(what, text string) { _, _ = fmt.Fprintf(Writer(), "%s: %s\n", what, text) }

// Writer returns a writer of texts in which no secret may be.
func Writer() io.Writer { return writer{} }

type writer struct{}

func (writer) Write(p []byte) (int, error) {
	book.mu.Lock()
	defer book.mu.Unlock()
	if book.said == nil {
		return len(p), nil
	}
	return book.said.Write(p)
}

// judge reads a folder, and returns what is wrong with the run.
func judge(dir string) (wrong []string, err error) {
	known, err := os.ReadFile(filepath.Join(dir, secretsFile))
	if err != nil {
		return nil, err
	}
	f := &finder{}
	lines := bufio.NewReader(bytes.NewReader(known))
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if !f.add(e.What, e.Value) {
			wrong = append(wrong, e.What+" cannot be recognised: it is to be made by secrecy.Mark")
		}
	}
	for _, name := range []string{saidFile, outFile, errFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return wrong, err
		}
		wrong = append(wrong, f.find(name, text)...)
	}
	return wrong, nil
}
