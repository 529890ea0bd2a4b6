package translate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// pathText returns the one text of a path for all texts that mean the same. nginx compares a
// location with the path of a request after it has normalised that path, so a path of an object is
// normalised in the same way. A prefix ends in no slash, unless it is the root. A regular
// expression stays as it is, since nginx matches it against normalised paths.
func pathText(match nginx.PathMatch, text string) (string, error) {
	if match == nginx.Regex {
		return text, nginx.CheckRegex(text)
	}
	path, err := normalPath(text)
	if err == nil && match == nginx.Prefix && path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	return path, err
}

// normalPath normalises a path as nginx normalises that of a request: percent-encoded bytes are
// decoded, once; then several slashes are one, and the segments . and .. are resolved. A question
// mark is a part of the path. What nginx answers with 400 is an error, and so is what cannot be
// written into the configuration of nginx.
func normalPath(text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return "", errors.New("it does not begin with /")
	}
	plain, err := decoded(text)
	if err != nil {
		return "", err
	}
	var segments []string
	all := strings.Split(plain[1:], "/")
	last := all[len(all)-1]
	for _, segment := range all {
		switch segment {
		case "", ".":
		case "..":
			if len(segments) == 0 {
				return "", errors.New("its .. leads out of the root")
			}
			segments = segments[:len(segments)-1]
		default:
			segments = append(segments, segment)
		}
	}
	path := "/" + strings.Join(segments, "/")
	if folder := last == "" || last == "." || last == ".."; folder && len(segments) > 0 {
		path += "/"
	}
	return path, nil
}

// decoded decodes what is percent-encoded.
func decoded(text string) (string, error) {
	var plain strings.Builder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		plain.WriteString(before)
		if !found {
			break
		}
		if len(after) < 2 {
			return "", errors.New("a % has no two hexadecimal digits")
		}
		b, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%%%s is no percent-encoded byte", after[:2])
		}
		plain.WriteByte(byte(b))
		rest = after[2:]
	}
	switch all := plain.String(); {
	case strings.ContainsFunc(all, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errors.New("it has a control character")
	case !utf8.ValidString(all):
		return "", errors.New("it is no text in UTF-8")
	default:
		return all, nil
	}
}
