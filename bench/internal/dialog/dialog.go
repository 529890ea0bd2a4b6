// Package dialog is how a campaign talks with the processes that it measures. Commands and answers
// are lines of JSON. Every command has one answer.
package dialog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Outcome is a part of each type of answers: whether the command has failed.
type Outcome struct {
	Error string `json:"error,omitempty"`
}

func (o *Outcome) outcome() *Outcome { return o }

// answer is a pointer to an answer that has an [Outcome].
type answer[A any] interface {
	*A
	outcome() *Outcome
}

// Serve answers the commands of in, until in ends. An error of do is an answer. Serve's own error
// is about in and out.
func Serve[C, A any, P answer[A]](in io.Reader, out io.Writer, do func(C) (A, error)) error {
	commands, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c C
		if err := commands.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		a, err := do(c)
		if err != nil {
			a = *new(A)
			P(&a).outcome().Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

// Receive waits for an answer. An error in the answer is its error.
func Receive[A any, P answer[A]](from *json.Decoder) (a A, err error) {
	if err := from.Decode(&a); err != nil {
		return a, fmt.Errorf("it ended without an answer: %w", err)
	}
	if failed := P(&a).outcome().Error; failed != "" {
		return a, errors.New(failed)
	}
	return a, nil
}
