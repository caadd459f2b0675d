#!/usr/bin/perl
# The library as one file: amalgamate.pl <list> <folder to write holdfast.c, holdfast.h and holdfast.hpp into>
#
# The list (cmake/amalgamation.cmake) has one line per fact, its words separated by tabs:
#
#     version  <text>
#     root     <folder>             where "base/list.h" or <holdfast/base.h> is looked for; several, in order
#     inside   <name> <file>        a header of somebody else whose text goes into the file: <xxhash.h>
#     schema   <symbol> <file>      a text, as an array of that name
#     image    <processor> <file>   the helper program
#     unit     <define or -> <file> a source, in this order; with a define, it is compiled if that is defined
#
# What one file may see that others must not is made unique:
#
#   - names of file scope (static functions and variables, typedefs, tags, enumerators) get the name of their file behind them:
#     step__engine_loop. Those that begin with hf_ only if they are there twice; all others always, because a header of the system
#     that another file includes may declare the same name, today (poll, pause) or in its next version;
#   - macros of a unit are undefined behind it; a name that is a macro of a header which its file does not include gets __inside;
#   - headers come once, before all units; those of the system come first, because hidden visibility begins behind them.
#
# What this misses does not pass in silence: two definitions of one name do not compile, and the test package/amalgamation compiles with
# -Wredundant-decls, which tells of two declarations (`static int count;` in two files would be one variable).
use strict;
use warnings;

my ($list, $out) = @ARGV;
die "usage: amalgamate.pl <list> <folder>\n" unless defined $out;

# ---- The list ----

my ($version, @roots, %inside, @schemas, @images, @units, %guard_of);

sub slurp
{
    my ($path) = @_;
    open my $file, '<:raw', $path or die "amalgamate: cannot read $path: $!\n";
    local $/ = undef;
    my $text = <$file>;
    close $file;
    return defined $text ? $text : '';
}

for (split /\n/, slurp($list)) {
    my ($word, @rest) = split /\t/;
    next unless defined $word;
    if ($word eq 'version') { $version = $rest[0] }
    elsif ($word eq 'root') { push @roots, $rest[0] }
    elsif ($word eq 'inside') { $inside{$rest[0]} = $rest[1] }
    elsif ($word eq 'schema') { push @schemas, {symbol => $rest[0], path => $rest[1]} }
    elsif ($word eq 'image') { push @images, {processor => $rest[0], path => $rest[1]} }
    elsif ($word eq 'unit') { push @units, {guard => $rest[0] eq '-' ? '' : $rest[0], path => $rest[1]} }
    else { die "amalgamate: $list: what is '$word'?\n" }
}

# The path below the root that has the file, such as base/list.h.
sub name_of
{
    my ($path) = @_;
    for (@roots) {
        return substr $path, length($_) + 1 if index($path, "$_/") == 0;
    }
    die "amalgamate: $path lies below no root\n";
}

sub find
{
    my ($name) = @_;
    for (@roots) {
        return "$_/$name" if -e "$_/$name";
    }
    return undef;
}

# ---- Tokens ----

# The text as a list of [kind, text]: directive (a whole line, continued ones too), comment, text (string or character), name, number, blank, sign.
sub tokens_of
{
    my ($text, $path) = @_;
    my @tokens;
    my $fresh = 1; # at the beginning of a line
    pos($text) = 0;
    while (pos($text) < length $text) {
        if ($fresh && $text =~ /\G[ \t]*#(?:[^\n\\\/]|\\\n|\\.|\/\*.*?\*\/|\/)*/gcs) { push @tokens, ['directive', $&]; $fresh = 0 }
        elsif ($text =~ /\G\/\*.*?\*\//gcs) { push @tokens, ['comment', $&] }
        elsif ($text =~ /\G\/\/[^\n]*/gc) { push @tokens, ['comment', $&] }
        elsif ($text =~ /\G\s+/gc) { push @tokens, ['blank', $&]; $fresh = 1 if $& =~ /\n/ }
        elsif ($text =~ /\G(?:u8|[uUL])?"(?:[^"\\]|\\.)*"/gcs) { push @tokens, ['text', $&]; $fresh = 0 }
        elsif ($text =~ /\G[uUL]?'(?:[^'\\]|\\.)*'/gcs) { push @tokens, ['text', $&]; $fresh = 0 }
        elsif ($text =~ /\G[A-Za-z_]\w*/gc) { push @tokens, ['name', $&]; $fresh = 0 }
        elsif ($text =~ /\G\.?[0-9](?:[eEpP][+-]|[\w.'])*/gc) { push @tokens, ['number', $&]; $fresh = 0 }
        elsif ($text =~ /\G(?:->|\.\.\.|.)/gcs) { push @tokens, ['sign', $&]; $fresh = 0 }
        else { die "amalgamate: $path: cannot read on\n" }
    }
    return \@tokens;
}

# ---- Declarations of file scope ----

# The names that a declaration without its brace groups declares.
sub declared_by
{
    my @words = @_; # token texts; a brace group is one '{}'
    my @names;
    my ($depth, $squares, $last, $done) = (0, 0, undef, 0);
    for (my $i = 0; $i < @words; $i++) {
        my $word = $words[$i];
        if ($word =~ /^(__attribute__|_Alignas|__asm__|_Static_assert)$/ || ($word =~ /^HF_[A-Z_]+$/ && ($words[$i + 1] // '') eq '(')) {
            # Skip it with its parentheses.
            my $open = 0;
            while (++$i < @words) {
                $open++ if $words[$i] eq '(';
                last if $words[$i] eq ')' && --$open == 0;
            }
        }
        elsif ($word eq '(') {
            if ($depth == 0 && !$done && defined $last && $squares == 0) { # a function, or (*name)(...)
                if (defined $words[$i + 1] && $words[$i + 1] eq '*' && ($words[$i + 2] // '') =~ /^\w+$/) { push @names, $words[$i + 2] }
                else { push @names, $last }
                $done = 1;
            }
            $depth++;
        }
        elsif ($word eq ')') { $depth-- }
        elsif ($word eq '[') {
            if ($depth == 0 && !$done && $squares == 0) { push @names, $last; $done = 1 }
            $squares++;
        }
        elsif ($word eq ']') { $squares-- }
        elsif ($depth == 0 && $squares == 0) {
            if ($word eq '=' || $word eq ';' || $word eq ',') {
                push @names, $last if !$done && defined $last;
                $done = $word eq '=';
                $last = undef if $word eq ',';
                if ($word eq '=') { # the value ends at the next comma
                    my $open = 0;
                    while ($i + 1 < @words && !($open == 0 && $words[$i + 1] =~ /^[,;]$/)) {
                        $i++;
                        $open++ if $words[$i] eq '(' || $words[$i] eq '[';
                        $open-- if $words[$i] eq ')' || $words[$i] eq ']';
                    }
                }
            }
            elsif ($word =~ /^[A-Za-z_]\w*$/) { $last = $word }
        }
    }
    return @names;
}

# What a file defines at file scope: {name => kind}, kinds are static, extern, typedef, forward (a header names a struct
# that is elsewhere), tag, enumerator. And its macros: {name => whether it gives way
# to one of the system}.
sub survey
{
    my ($tokens, $path) = @_;
    my (%names, %macros, %value);
    my @code;
    my $before = '';
    for (@$tokens) {
        my ($kind, $text) = @$_;
        if ($kind eq 'directive') {
            if ($text =~ /^\s*#\s*define\s+(\w+)(.*)/s) {
                my ($name, $as) = ($1, $2);
                $as =~ s/\/\*.*?\*\///gs;
                $macros{$name} = $before eq $name;
                $value{$name} = ($as =~ /^\(/ ? '' : ' ') . join ' ', split(' ', $as);
            }
            $before = $text =~ /^\s*#\s*ifndef\s+(\w+)/ ? $1 : '';
        }
        elsif ($kind ne 'blank' && $kind ne 'comment') { push @code, $text }
    }
    my @declaration;
    for (my $i = 0; $i < @code; $i++) {
        my $word = $code[$i];
        $names{$code[$i + 1]} //= 'forward' if $word =~ /^(struct|union)$/ && ($code[$i + 1] // '') =~ /^[A-Za-z_]\w*$/ && $path =~ /\.h$/;
        if ($word eq '{') {
            if (@declaration >= 2 && $declaration[-1] =~ /^"C/ && $declaration[-2] eq 'extern') { @declaration = (); next } # extern "C" {
            # Which braces are these? An enumeration has its names inside; a function's body ends the declaration.
            my $enum = 0;
            if (@declaration && $declaration[-1] eq 'enum') { $enum = 1 }
            elsif (@declaration >= 2 && $declaration[-2] =~ /^(struct|union|enum)$/) { $names{$declaration[-1]} = 'tag'; $enum = $1 eq 'enum' }
            my $body = !$enum && @declaration && $declaration[-1] eq ')' && !grep { $_ eq '=' } @declaration;
            my ($depth, $fresh, $inner) = (1, 1, 0);
            while ($depth > 0 && ++$i < @code) {
                my $in = $code[$i];
                $depth++ if $in =~ /^[{(\[]$/;
                $depth-- if $in =~ /^[})\]]$/;
                if ($enum && $depth == 1) {
                    $names{$in} = 'enumerator' if $fresh && $in =~ /^[A-Za-z_]\w*$/;
                    $fresh = $in eq ',';
                }
                if (!$body && $in =~ /^(struct|union)$/ && $path =~ /\.h$/ && ($code[$i + 1] // '') =~ /^[A-Za-z_]\w*$/) {
                    $names{$code[$i + 1]} //= 'forward';
                }
                if (!$body && !$enum && $in =~ /^(struct|union|enum)$/) { # types inside a struct are of file scope, too
                    my $at = $i + 1;
                    $at++, $names{$code[$i + 1]} = 'tag' if ($code[$at] // '') =~ /^\w+$/ && ($code[$i + 2] // '') eq '{';
                    if ($in eq 'enum' && ($code[$at] // '') eq '{') {
                        for (my $j = $at + 1; $code[$j] ne '}'; $j++) {
                            $names{$code[$j]} = 'enumerator' if $code[$j - 1] =~ /^[{,]$/;
                        }
                    }
                }
            }
            push @declaration, '{}';
            next unless $body;
            $word = ';';
        }
        if ($word eq ';') {
            my $kind = "@declaration" =~ /^typedef (struct|union) \w+ \w+$/ ? 'forward' : (grep { $_ eq 'typedef' } @declaration) ? 'typedef' : (grep { $_ eq 'static' } @declaration) ? 'static' : 'extern';
            my @words = grep { !/^(typedef|static|extern|inline|const|volatile|_Thread_local|_Noreturn|_Atomic)$/ } @declaration;
            my @bare;
            for (my $j = 0; $j < @words; $j++) { # `struct x` and `struct x {}` are a type's name
                if ($words[$j] =~ /^(struct|union|enum)$/) {
                    $j++ if ($words[$j + 1] // '') =~ /^\w+$/;
                    $j++ if ($words[$j + 1] // '') eq '{}';
                    push @bare, '0type';
                }
                else { push @bare, $words[$j] }
            }
            if (@bare != 1 || $bare[0] ne '0type') {
                !defined $names{$_} || $names{$_} eq 'forward' and $names{$_} = $kind for declared_by(@bare, ';');
            }
            @declaration = ();
        }
        elsif ($word ne '}') { push @declaration, $word }
    }
    return (\%names, \%macros, \%value);
}

# ---- Files ----

my %files; # by name: {name, tokens, names, macros, sees (headers, by name), is_header}

sub load
{
    my ($path) = @_;
    my $name = name_of($path);
    return $files{$name} if $files{$name};
    my $file = $files{$name} = {name => $name, sees => [], system => []};
    $file->{tokens} = tokens_of(slurp($path), $path);
    # Lists such as verbs.def are read several times and belong to the text around them.
    my @all;
    for (@{$file->{tokens}}) {
        if ($_->[0] eq 'directive' && $_->[1] =~ /^\s*#\s*include\s+"([^"]+\.def)"/) {
            push @all, @{tokens_of(slurp(find($1) // die("amalgamate: $name: no $1\n")), $1)};
        }
        else { push @all, $_ }
    }
    $file->{tokens} = \@all;
    ($file->{names}, $file->{macros}, $file->{value}) = survey($file->{tokens}, $path);
    my ($depth, $guarded) = (0, 0);
    for (@{$file->{tokens}}) {
        next unless $_->[0] eq 'directive';
        my $text = $_->[1];
        if ($text =~ /^\s*#\s*if/) {
            $depth++;
            $guarded = 1 if $depth == 1 && $text =~ /ifndef\s+\w+_H\b/;
        }
        elsif ($text =~ /^\s*#\s*endif/) { $depth-- }
        elsif ($text =~ /^\s*#\s*include\s+[<"]([^>"]+)[>"]/) {
            my $found = find($1);
            if (defined $found) { push @{$file->{sees}}, load($found)->{name} }
            elsif ($depth - $guarded == 0 && !$inside{$1}) { push @{$file->{system}}, $1 } # goes to the top
        }
    }
    return $file;
}

my %seen_from; # by name: all headers that a file sees

sub headers_of
{
    my ($file) = @_;
    return $seen_from{$file->{name}} //= do {
        my %all;
        for (@{$file->{sees}}) {
            $all{$_} = 1;
            $all{$_} = 1 for keys %{headers_of($files{$_})};
        }
        \%all;
    };
}

my (@sources, @assemblies);
for (@units) {
    if ($_->{path} =~ /\.S$/) { push @assemblies, $_; next }
    my $file = load($_->{path});
    $file->{guard} = $_->{guard};
    (my $stem = $file->{name}) =~ s/\.c$//;
    $guard_of{"$stem.h"} = $_->{guard};
    (my $folder = $stem) =~ s/\/[^\/]*$//;
    $guard_of{"$folder/"} = exists $guard_of{"$folder/"} && $guard_of{"$folder/"} ne $_->{guard} ? '' : $_->{guard};
    ($file->{tag} = $stem) =~ s/\W/_/g;
    push @sources, $file;
}

# A header belongs to what its unit belongs to, or to what all units of its folder belong to.
sub guard_of
{
    my ($name) = @_;
    (my $folder = $name) =~ s/[^\/]*$//;
    return $guard_of{$name} // $guard_of{$folder} // '';
}

# Headers, each behind those that it includes.
my (@public, @private, %placed);

sub place
{
    my ($name) = @_;
    return if $placed{$name}++;
    place($_) for @{$files{$name}{sees}};
    push @{$name =~ /^holdfast\// ? \@public : \@private}, $files{$name};
}

load(find('holdfast/holdfast.h'));
place('holdfast/holdfast.h');
for (@sources) {
    place($_) for @{$_->{sees}};
}

# ---- Names ----

my (%of_headers, %of_macros, %times);
for my $file (@public, @private) {
    push @{$of_headers{$_}}, $file->{name} for keys %{$file->{names}};
    for (keys %{$file->{macros}}) {
        die "amalgamate: $of_macros{$_} and $file->{name} both define '$_'\n"
            if $of_macros{$_} && !$file->{macros}{$_} && $files{$of_macros{$_}}{value}{$_} ne $file->{value}{$_};
        $of_macros{$_} = $file->{name};
    }
}
# Headers that define the same name mean two things by it, and no file sees both: it is renamed in all files that see one of them.
for my $name (keys %of_headers) {
    my @definers = grep { $files{$_}{names}{$name} !~ /^(extern|forward)$/ } @{$of_headers{$name}};
    next if @definers < 2;
    for my $definer (grep { !/^holdfast\// } @definers) {
        (my $tag = $definer) =~ s/\W/_/g;
        for my $file (@private, @sources) {
            $file->{rename}{$name} = "${name}__$tag" if $file->{name} eq $definer || headers_of($file)->{$definer};
        }
    }
}
for my $file (@sources) {
    $times{$_}++ for grep { $file->{names}{$_} ne 'extern' } keys %{$file->{names}};
}
for my $file (@sources) {
    my $sees = headers_of($file);
    for my $name (keys %{$file->{names}}) {
        next if $file->{names}{$name} eq 'extern';
        # A type that a header only names, and this file defines, keeps its name: the compiler finds a second one.
        next if grep { $sees->{$_} } @{$of_headers{$name} // []};
        $file->{rename}{$name} = "${name}__$file->{tag}" if $times{$name} > 1 || exists $of_headers{$name} || $name !~ /^hf_/i;
    }
    for my $name (keys %{$file->{macros}}) {
        die "amalgamate: $file->{name} defines '$name', as $of_macros{$name} does\n" if $of_macros{$name} && !$sees->{$of_macros{$name}};
        die "amalgamate: $file->{name} defines '$name' anew\n" if $of_macros{$name} && !$file->{macros}{$name};
    }
}

# Names that are macros of a header which their file does not see: hf_execution_new is a function of the engine, and a macro for clients.
my %inside_name;
for my $file (@private, @sources) {
    my $sees = headers_of($file);
    my $tokens = $file->{tokens};
    for (my $i = 0; $i < @$tokens; $i++) {
        my ($kind, $name) = @{$tokens->[$i]};
        next unless $kind eq 'name' && $of_macros{$name} && !exists $file->{macros}{$name} && !$sees->{$of_macros{$name}};
        # A macro with arguments is one only before a parenthesis.
        $inside_name{$name} = 1 unless $files{$of_macros{$name}}{value}{$name} =~ /^\(/ && ($tokens->[$i + 1][1] // '') ne '(';
    }
}
for my $file (@private, @sources) {
    my $sees = headers_of($file);
    $sees->{$of_macros{$_}} || $file->{name} eq $of_macros{$_} or $file->{rename}{$_} = "${_}__inside" for keys %inside_name;
}
print "macros elsewhere, renamed: ", join(' ', sort keys %inside_name), "\n" if $ENV{HF_VERBOSE};

# Macros that take the name of a member, and which argument that is.
my %takes_member = (offsetof => 1, HF_CONTAINER => 2, HF_CONTAINER_CONST => 2);

# The text of a file with its names, without the headers that are there already.
sub text_of
{
    my ($file) = @_;
    my $rename = $file->{rename} // {};
    my $text = '';
    my ($before, $before_that) = ('', ''); # signs and names only
    my @structs;                           # for each open brace: whether it is that of a struct
    my @calls;                             # for each open parenthesis: the name before it, and how many commas are behind it
    my $tokens = $file->{tokens};
    for (my $i = 0; $i < @$tokens; $i++) {
        my ($kind, $word) = @{$tokens->[$i]};
        if ($kind eq 'directive') {
            $text .= directive($file, $word, $rename);
            next;
        }
        if ($kind eq 'blank' || $kind eq 'comment' || $kind eq 'text' || $kind eq 'number') {
            $text .= $word;
            ($before, $before_that) = ($word, $before) if $kind eq 'text' || $kind eq 'number';
            next;
        }
        if ($word eq '{') { push @structs, ($before =~ /^(struct|union)$/ || $before_that =~ /^(struct|union)$/) ? 1 : 0 }
        if ($word eq '}') { pop @structs }
        if ($word eq '(') { push @calls, [$before, 0] }
        if ($word eq ')') { pop @calls }
        if ($word eq ',' && @calls) { $calls[-1][1]++ }
        if ($kind eq 'name' && $rename->{$word} && $before ne '.' && $before ne '->' && !is_member($tokens, $i, \@structs, $before) && !(@calls && $calls[-1][1] >= ($takes_member{$calls[-1][0]} // 9))) {
            $text .= $rename->{$word};
        }
        else { $text .= $word }
        ($before, $before_that) = ($word, $before);
    }
    return $text;
}

# Whether a name inside the braces of a struct is that of a member, and not that of a type.
sub is_member
{
    my ($tokens, $i, $structs, $before) = @_;
    my $j = $i + 1;
    $j++ while $j < @$tokens && ($tokens->[$j][0] eq 'blank' || $tokens->[$j][0] eq 'comment');
    my $next = $j < @$tokens ? $tokens->[$j][1] : '';
    if (@$structs && $structs->[-1]) {
        return ($next =~ /^[;,\[:]$/ || ($next eq ')' && $before eq '*')) && $before !~ /^(struct|union|enum)$/;
    }
    return 0;
}

sub directive
{
    my ($file, $word, $rename) = @_;
    if ($word =~ /^\s*#\s*include\s+[<"]([^>"]+)[>"]/) {
        my $name = $1;
        return '' if defined find($name) || grep { $_ eq $name } @{$file->{system}};
        if ($inside{$name}) {
            return "\n#pragma GCC visibility push(default) /* it includes headers of the system */\n/* ---- $name ---- */\n" . slurp($inside{$name})
                . "\n/* ---- $file->{name} goes on ---- */\n#pragma GCC visibility pop\n";
        }
        return "#pragma GCC visibility push(default)\n$word\n#pragma GCC visibility pop"; # under a condition of its own
    }
    $word =~ s/__has_include\("([^"]+)"\)/'defined(' . (guard_of($1) || die("amalgamate: $1 has no define\n")) . ')'/ge;
    $word =~ s/(?<![.\w#]|->)([A-Za-z_]\w*)/$rename->{$1} \/\/ $1/ge if $word =~ /^\s*#\s*define/;
    return $word;
}

# ---- Writing ----

my $license = <<"END";
/* Holdfast $version: %s
 *
 * %s
 *
 * Licensed under the Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0 */
END

sub put
{
    my ($name, @parts) = @_;
    my $text = join '', @parts;
    $text =~ s/[ \t]+\n/\n/g;
    $text =~ s/\n{3,}/\n\n/g;
    open my $file, '>:raw', "$out/$name.new" or die "amalgamate: cannot write $out/$name: $!\n";
    print $file $text;
    close $file or die "amalgamate: cannot write $out/$name: $!\n";
    rename "$out/$name.new", "$out/$name" or die "amalgamate: cannot write $out/$name: $!\n";
}

sub heading
{
    my ($name) = @_;
    return "\n/* ---- $name " . '-' x (110 - length $name) . " */\n\n";
}

# In the public headers a system header stays where it is.
my $header = sprintf $license, 'all public headers in one', "The other half is holdfast.c. C++ programs may include holdfast.hpp instead, which includes this file.";
for my $file (@public) {
    my $text = '';
    for (@{$file->{tokens}}) {
        my ($kind, $word) = @$_;
        next if $kind eq 'directive' && $word =~ /^\s*#\s*include\s+<(holdfast\/[^>]+)>/;
        $text .= $word;
    }
    $header .= heading($file->{name}) . $text;
}
put('holdfast.h', $header);

my $hpp = slurp(find('holdfast/holdfast.hpp'));
$hpp =~ s/#include <holdfast\/holdfast\.h>/#include "holdfast.h"/ or die "amalgamate: holdfast.hpp does not include holdfast.h\n";
$hpp =~ s/<holdfast\/holdfast\.hpp>/"holdfast.hpp"/;
put('holdfast.hpp', $hpp);

sub guarded
{
    my ($guard, $text) = @_;
    return $guard eq '' ? $text : "#ifdef $guard\n$text\n#endif /* $guard */\n";
}

my $body = sprintf $license, 'the library as one file', <<'END';
    cc -c -O2 holdfast.c                        then link with -lsqlite3 -lyajl -lpthread -lm
 *
 *     -DHF_WITH_REMOTE      hf_open("temporal://..."): needs -lnghttp2 -lssl -lcrypto -lz
 *     -DHF_WITH_ZSTD        hf_codec_zstd: needs -lzstd
 *     -DHF_SWITCH_JUMP=1    with -mno-red-zone on x86-64: fibers switch faster
 *     -DHF_SWITCH_FPU=1     each fiber has its own rounding mode
 *
 * gcc 12 or clang 14 and later, on Linux, x86-64 and aarch64. It is made by `./dev amalgamate` of the sources that the headings name;
 * change those.
END
$body =~ s/\n\n \*\n \* Licensed/\n *\n * Licensed/;
$body .= <<'END';
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#ifndef HF_SWITCH_FPU
#define HF_SWITCH_FPU 0
#endif
#ifndef HF_SWITCH_JUMP
#define HF_SWITCH_JUMP 0
#endif
#ifndef ZLIB_CONST
#define ZLIB_CONST
#endif
#undef linux /* GNU C defines both; they are names here */
#undef unix
#pragma GCC diagnostic ignored "-Wunused-function" /* inline functions of internal headers */

#include "holdfast.h"

END

my (%included, %under);
for my $file (@private, @sources) {
    my $guard = exists $file->{guard} ? $file->{guard} : guard_of($file->{name});
    $under{$_}{$guard} = 1 for @{$file->{system}};
}
for my $guard ('', sort(do { my %g = map { $_->{guard} => 1 } @sources; delete $g{''}; keys %g })) {
    my $text = join '', map { "#include <$_>\n" } grep { $guard eq '' ? $under{$_}{''} : !$under{$_}{''} && $under{$_}{$guard} } sort keys %under;
    $body .= guarded($guard, $text) if $text ne '';
}
$body .= "\n#pragma GCC visibility push(hidden)\n";
for my $file (@private) {
    $body .= heading($file->{name}) . guarded(guard_of($file->{name}), text_of($file));
}

# Assembly: conditions stay conditions, lines become strings. Notes are left out: the compiler writes its own.
for (@assemblies) {
    my $text = slurp($_->{path});
    $text =~ s/\/\*.*?\*\///gs;
    my ($asm, $note) = ('', 0);
    for my $line (split /\n/, $text) {
        if ($line =~ /^\s*#\s*(if|el|endif|define|undef)/) { $asm .= "$line\n"; $note = 0; next }
        $note = 1 if $line =~ /^\s*\.section\s+\.note/;
        next if $note || $line !~ /\S/;
        $line =~ s/([\\"])/\\$1/g;
        $line =~ s/\s+$//;
        $asm .= "    \"$line\\n\"\n";
    }
    $body .= heading(name_of($_->{path})) . "__asm__(\".pushsection .text\\n\"\n$asm    \".popsection\\n\");\n";
}

for my $file (@sources) {
    my $text = text_of($file);
    my @undefined = grep { !$file->{macros}{$_} && !$of_macros{$_} } sort keys %{$file->{macros}};
    $text .= "\n" . join('', map { "#undef $_\n" } @undefined) if @undefined;
    $body .= heading($file->{name}) . guarded($file->{guard}, $text);
}
# Data comes last: its declarations are in the units.
for (@schemas) {
    my $text = slurp($_->{path});
    $text =~ s/([\\"])/\\$1/g;
    $text =~ s/([^\n]*)\n/    "$1\\n"\n/g;
    $body .= heading(name_of($_->{path})) . "const char $_->{symbol}\[] =\n$text    ;\n";
}

$body .= heading('the helper program') . "/* src/env/posix/helper, compiled: it starts and watches the processes that a program starts. */\n";
my $if = '#if';
for (@images) {
    my @bytes = unpack 'C*', slurp($_->{path});
    my $count = @bytes;
    $body .= "$if defined(__$_->{processor}__)\nconst size_t hf_posix_helper_image_len = $count;\n"
        . "const unsigned char hf_posix_helper_image[$count] __attribute__((aligned(16))) = {\n";
    while (my @line = splice @bytes, 0, 32) {
        $body .= '    ' . join(',', @line) . ",\n";
    }
    $body .= "};\n";
    $if = '#elif';
}
$body .= "#else\n#error \"this file has no helper program for this processor\"\n";
$body .= "#endif\n";

$body .= "\n#pragma GCC visibility pop\n";
put('holdfast.c', $body);
