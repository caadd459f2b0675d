#!/usr/bin/env bash
# A disk that fails for a moment, on a real kernel: kernel.sh PROGRAMS HOLDFAST [options]
#
#     --count N       runs, 10 unless told
#     --checkpoint    the write that fails is one of a checkpoint, to the database; otherwise it is one of a commit, to its log
#     --drop          drop both files from the page cache between the two programs
#     --plain         append to a file without the library, and see what the kernel alone loses
#     --merged        leave requests to the disk as long as the kernel makes them
#
# PROGRAMS is the folder with kernel_starts, kernel_append and kernel_cut. Each run has a disk of its own:
#
#     ext4 -> loop device -> disk.img, a file with holes on a tmpfs
#
# The metadata of ext4 has its room on the tmpfs, its free blocks have none. One run:
#
#   1. A first program starts workflows.
#   2. A balloon fills the tmpfs: new blocks cannot be written, fdatasync fails, the program ends.
#   3. The balloon goes. A second program opens the same file and starts workflows.
#   4. The power is cut: ext4 is shut down without a flush of its journal. Only then is the image copied.
#   5. The copy is mounted. A start that was acknowledged and is not there is lost.
#
# The copy is what a power cut leaves only if nobody writes meanwhile, so it is compared with the image afterwards. The options show
# two faults of the kernel (seen on 6.18) that a program has to know of:
#
# - The loop driver reports a request as written when only its first blocks were (lo_complete_rq takes a short write for a whole
#   one). fdatasync then returns 0 for blocks that are nowhere, and even the first program loses. No program can notice that, so a
#   request is one block long here unless --merged is given.
# - After a failed write to a new block, ext4 keeps the block in the page cache as mapped, and on the disk as unwritten. Written
#   again through the cache it reaches the disk, and fdatasync returns 0, but the block stays marked as unwritten and reads as zeros
#   after the next mount. So what a failed sync has left in the cache can be neither trusted nor repaired in place. With --plain
#   the second program loses the record that begins in such a block; with --checkpoint a database is destroyed. A file that was
#   dropped from the cache (--drop) is read from the disk, and written as it should.
#
# Needs root and a loop device; says "skipped" without. Mounts are in a namespace of their own and vanish with it.
set -euo pipefail

second_count=40 # started by the second program
image_mb=64     # of disk.img
tmpfs_mb=100    # disk.img, its copy, the balloon
wait_s=60       # for any step

programs=$1 holdfast=$2
shift 2
arguments=("$@")
count=10 checkpoint=no drop=no plain=no merged=no
while (($# > 0)); do
    case $1 in
    --count) count=${2:?--count needs a number} && shift ;;
    --checkpoint) checkpoint=yes ;;
    --drop) drop=yes ;;
    --plain) plain=yes ;;
    --merged) merged=yes ;;
    *) echo "kernel.sh: unknown option '$1'; there are --count N, --checkpoint, --drop, --plain, --merged" >&2 && exit 2 ;;
    esac
    shift
done
[[ $count =~ ^[1-9][0-9]*$ ]] || { echo "kernel.sh: --count needs a number, not '$count'" >&2 && exit 2; }
[[ $plain$checkpoint != yesyes ]] || { echo "kernel.sh: --plain has no checkpoints" >&2 && exit 2; }
PATH=$PATH:/usr/sbin:/sbin

skip()
{
    echo "skipped: $*"
    exit 0
}

# The runs are made by a second process of this script, in a session and a mount namespace of its own. The first only waits, and
# tells it of Ctrl-C by a file: so no signal reaches a run between a mount and the line that remembers it.
if [[ -z ${HF_KERNEL_FOLDER:-} ]]; then
    [[ $(id -u) == 0 ]] || skip "a disk that fails is a mounted loop device, and only root may make one"
    for tool in mkfs.ext4 losetup fstrim fallocate setsid unshare mount; do
        command -v "$tool" >/dev/null || skip "there is no $tool here"
    done
    free=$(losetup -f 2>/dev/null) && [[ -b $free ]] || skip "there is no loop device here"
    unshare -m true 2>/dev/null || skip "a mount namespace cannot be made here"
    folder=$(mktemp -d)
    trap ': >"$folder/over"' INT TERM HUP
    HF_KERNEL_FOLDER=$folder HF_KERNEL_WAITER=$$ setsid unshare -m "$0" "$programs" "$holdfast" "${arguments[@]}" &
    runner=$! code=0
    while kill -0 "$runner" 2>/dev/null; do # a signal ends a wait, not the loop
        wait "$runner" && code=0 || code=$?
    done
    [[ ! -e $folder/over ]] || code=130
    rm -rf --one-file-system "$folder"
    exit "$code"
fi
folder=$HF_KERNEL_FOLDER

is_over()
{
    [[ -e $folder/over ]] || ! kill -0 "$HF_KERNEL_WAITER" 2>/dev/null
}

# ---- What is there, and goes again -------------------------------------------------------------------------------------

pid='' queue='' sectors_kb=''

stop_program()
{
    if [[ -n $pid ]]; then
        { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
        pid=''
    fi
}

take_down()
{
    stop_program
    umount "$folder/copy" 2>/dev/null || true
    umount "$folder/disk" 2>/dev/null || true
    if [[ -n $queue ]]; then
        echo "$sectors_kb" >"$queue" || true # it would outlive the device
        queue=''
    fi
    local device
    for device in $(losetup -n -O NAME -j "$folder/tmpfs/disk.img") $(losetup -n -O NAME -j "$folder/tmpfs/copy.img"); do
        losetup -d "$device" || true
    done
    umount "$folder/tmpfs" 2>/dev/null || true
}

trap take_down EXIT

# ---- One run -----------------------------------------------------------------------------------------------------------

# Every step is an || return 1: these functions are called where bash does not end at the first command that fails.
set_up()
{
    local image=$folder/tmpfs/disk.img loop
    mount -t tmpfs -o "size=${tmpfs_mb}m" none "$folder/tmpfs" || return 1
    truncate -s "${image_mb}M" "$image" || return 1
    mkfs.ext4 -q -F -b 4096 -N 64 -J size=4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$image" || return 1
    fallocate -l "${image_mb}M" "$image" || return 1 # room for all, also where mkfs has left holes
    loop=$(losetup -f --show "$image") || return 1
    if [[ $merged == no ]]; then
        local setting=/sys/block/${loop#/dev/}/queue/max_sectors_kb
        sectors_kb=$(cat "$setting") || return 1
        queue=$setting
        echo 4 >"$queue" || return 1
    fi
    mount "$loop" "$folder/disk" || return 1
    fstrim "$folder/disk" || return 1 # free blocks lose their room
    (($(du -m "$image" | cut -f1) < image_mb / 2))
}

# until_true <command>: false when it does not come true in time, or when there is no time left.
until_true()
{
    local ends=$((SECONDS + wait_s))
    until "$@"; do
        ((SECONDS < ends)) && ! is_over || return 1
        sleep 0.02
    done
}

lines_of()
{
    grep -c "^$1" "$2" || true
}

has_acked()
{
    (($(lines_of acked "$1") >= $2)) || has_ended
}

has_ended()
{
    ! kill -0 "$pid" 2>/dev/null || [[ $(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null || echo Z) == Z ]]
}

is_through()
{
    grep -q '^all' "$1" || has_ended
}

# start <name> <count> [options of the database]: in the background; its words go to the file of its name.
start()
{
    local program=kernel_starts
    [[ $plain == no ]] || program=kernel_append
    : >"$folder/$1" # nothing of the run before
    "$programs/$program" "$folder/disk/it${3:-}" "$1" "$2" >"$folder/$1" 2>"$folder/$1.log" &
    pid=$!
}

# The ids that are in the mounted copy.
found()
{
    if [[ $plain == yes ]]; then
        "$programs/kernel_append" "$folder/copy/it" || true
    else
        { "$holdfast" show "$folder/copy/it" --all 2>/dev/null || true; } | cut -d' ' -f1
    fi
}

# lost <name>...: how many ids that these programs were told of are not among those found.
lost()
{
    acked "$@" | sort | comm -23 - "$folder/found" | wc -l
}

acked()
{
    (cd "$folder" && sed -n 's/^acked //p' "$@")
}

# The steps say why they failed in $why.

# A log that is much longer than it may be from then on: there is room for all that is written to it.
lengthen_log()
{
    start zero 100000
    why="the program before the first is too slow"
    until_true has_acked "$folder/zero" 60 || return 1
    stop_program
}

first_life()
{
    start first 100000 "$options"
    why="the first program is too slow"
    until_true has_acked "$folder/first" $((20 + number * 7 % 60)) || return 1 # the disk fails elsewhere each time
    why="the disk could not be filled: $(tail -1 "$folder/first")"
    kill -STOP "$pid" || return 1 # so that the disk is full from one write to the next
    dd if=/dev/zero of="$folder/tmpfs/balloon" bs=64k count=$((tmpfs_mb * 16)) 2>/dev/null && return 1
    kill -CONT "$pid" || return 1
    why="the first program does not notice that its disk fails"
    until_true has_ended || return 1
    stop_program
    why="the first program ended: $(tail -1 "$folder/first.log")"
    grep -q '^refused' "$folder/first" && rm "$folder/tmpfs/balloon"
}

# What a failed sync has left in the page cache.
drop_cache()
{
    local file
    why="the page cache could not be dropped"
    for file in it it-wal; do
        [[ ! -e $folder/disk/$file ]] ||
            dd of="$folder/disk/$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none || return 1
    done
}

second_life()
{
    start second "$second_count" "$options"
    why="the second program is too slow"
    until_true is_through "$folder/second" || return 1
    why="the second program ended: $(cat "$folder/second" "$folder/second.log" | tail -1)"
    grep -q '^all' "$folder/second"
}

cut_power()
{
    local image=$folder/tmpfs/disk.img copy=$folder/tmpfs/copy.img loop
    why="the power could not be cut"
    "$programs/kernel_cut" "$folder/disk" || return 1
    stop_program
    cp --sparse=always "$image" "$copy" || return 1
    why="somebody has written to the disk after its power was cut"
    cmp -s "$image" "$copy" || return 1
    why="the copy cannot be mounted"
    loop=$(losetup -f --show "$copy") && mount "$loop" "$folder/copy"
}

one_run()
{
    local why="the disk could not be made" first second first_count check=''
    : >"$folder/zero"
    if ! { set_up && { [[ $checkpoint == no ]] || lengthen_log; } && first_life && { [[ $drop == no ]] || drop_cache; } &&
        second_life && cut_power; }; then
        is_over && return
        void=$((void + 1))
        echo "  run $number: VOID: $why"
        return
    fi
    found | sort >"$folder/found" # nothing at all, if it cannot be opened
    first=$(lost zero first) second=$(lost second) first_count=$(acked zero first | wc -l)
    if [[ $plain == no ]] && ! check=$("$holdfast" db check --deep "$folder/copy/it" 2>&1); then
        damaged=$((damaged + 1))
        echo "  run $number: DAMAGED: $(tail -1 <<<"$check")"
    fi
    printf '  run %d: lost of the first life %d of %d, of the second life %d of %d\n' \
        "$number" "$first" "$first_count" "$second" "$second_count"
    runs=$((runs + 1))
    first_lost=$((first_lost + first)) first_all=$((first_all + first_count))
    second_lost=$((second_lost + second)) second_all=$((second_all + second_count))
    ((first == 0)) || first_runs=$((first_runs + 1))
    ((second == 0)) || second_runs=$((second_runs + 1))
}

# ---- All of them -------------------------------------------------------------------------------------------------------

runs=0 void=0 damaged=0 first_runs=0 second_runs=0 first_lost=0 first_all=0 second_lost=0 second_all=0

report()
{
    local what=starts violations=$((first_lost + second_lost + damaged + void))
    [[ $plain == no ]] || what=records
    printf 'kernel: %d runs, first life lost in %d (%d of %d %s), second life in %d (%d of %d), %d damaged, %d void, %d s, %d violations\n' \
        "$runs" "$first_runs" "$first_lost" "$first_all" "$what" "$second_runs" "$second_lost" "$second_all" \
        "$damaged" "$void" "$SECONDS" "$violations"
    ((violations == 0))
}

options=''
[[ $checkpoint == no ]] || options='?log=64K'
mkdir "$folder/tmpfs" "$folder/disk" "$folder/copy"
for ((number = 1; number <= count; number++)); do
    ! is_over || break
    one_run
    take_down
done
report
