<?php

declare(strict_types=1);

namespace App\Models;

use App\Contracts\Storable;

const VERSION = '1.0';

/**
 * A user.
 */
#[Entity]
final class User extends Model implements Storable, \JsonSerializable
{
    use HasName, Concerns\Timestamps;

    public const LIMIT = 10;
    private ?string $email = null;
    protected static int $count = 0, $other = 1;

    /** Makes one. */
    public function __construct(private readonly string $name, int $plain = 0)
    {
        $local = 1;
        parent::__construct();
    }

    public static function create(array $attributes = []): static
    {
        $callback = function () {};
        return new static(...$attributes);
    }

    abstract protected function missing(): void;

    #[Test]
    public function testName(): void {}
}

interface Repository extends Countable
{
    public function find(int $id): ?User;
}

trait HasName
{
    public function name(): string { return $this->name; }
}

enum Status: string implements HasLabel
{
    case Active = 'active';
    case Inactive = 'inactive';

    public function label(): string { return ucfirst($this->value); }
}

function helper(int ...$numbers): int
{
    return array_sum($numbers);
}

$handler = fn (int $x): int => $x * 2;
$plain = 1;
